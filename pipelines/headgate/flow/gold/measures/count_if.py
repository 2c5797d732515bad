"""``count_if(condition)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, DataType
from headgate.flow.gold.measures.adding import added, require_condition


class CountIf(MeasureFunction):
    """The number of rows for which a condition is true."""

    result = "bigint"
    keeps = "a count"
    takes = ("condition",)
    adds_up = True

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_condition("count_if", arguments[0].type)
        return BIGINT

    def fold(self, measure: Measure) -> MeasureFold:
        return MeasureFold({"n": added(BIGINT, f"count_if({measure.argument()})")}, "{n}")


MEMBER = CountIf()
