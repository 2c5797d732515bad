"""``count_distinct(x)``, exact."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, Array, DataType


class CountDistinct(MeasureFunction):
    result = "bigint"
    keeps = "every distinct value; grows with their number"

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        return BIGINT

    def fold(self, measure: Measure) -> MeasureFold:
        merge = (
            "case when {old} is null then {new} when {new} is null then {old} "
            "else array_union({old}, {new}) end"
        )
        values = StateField(
            Array(measure.arguments[0].type), f"collect_set({measure.argument()})", merge
        )
        return MeasureFold({"set": values}, "cast(coalesce(size({set}), 0) as bigint)")


MEMBER = CountDistinct()
