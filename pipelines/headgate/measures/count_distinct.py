"""``count_distinct(x)``, exact."""

from __future__ import annotations

from headgate.declaration.measures import Fold, MeasureKind, StateField
from headgate.declaration.model import Measure
from headgate.declaration.types import BIGINT, VOID, Array, DataType


class CountDistinct(MeasureKind):
    result = "bigint"
    keeps = "every distinct value; grows with their number"

    def type_of(self, argument: DataType) -> DataType:
        return BIGINT

    def fold(self, measure: Measure) -> Fold:
        merge = (
            "case when {old} is null then {new} when {new} is null then {old} "
            "else array_union({old}, {new}) end"
        )
        values = StateField(
            Array(measure.argument_type or VOID), f"collect_set({measure.argument})", merge
        )
        return Fold({"set": values}, "cast(coalesce(size({set}), 0) as bigint)")


MEMBER = CountDistinct()
