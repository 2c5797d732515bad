"""``count(*)`` and ``count(x)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, DataType
from headgate.flow.gold.measures.adding import counted


class Count(MeasureFunction):
    result = "bigint"
    keeps = "a count"
    takes_rows = True
    takes_nested = True
    distinct = "count_distinct"
    adds_up = True

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        return BIGINT

    def fold(self, measure: Measure) -> MeasureFold:
        return MeasureFold({"n": counted(measure)}, "{n}")


MEMBER = Count()
