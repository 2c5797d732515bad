"""``approx_count_distinct(x)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, BINARY, DOUBLE, FLOAT, INT, STRING, DataType

_EMPTY = "\\u0000headgate: an empty text"  # not a text that producers send


class ApproxCountDistinct(MeasureFunction):
    """A HyperLogLog sketch with 2^12 registers: standard error 1.6 %.

    The estimate is always taken from a union. The estimate of a sketch that was never in a union
    depends on its insertion order, so the value would depend on the division into batches.
    """

    result = "bigint"
    keeps = "a HyperLogLog sketch of bounded size, standard error 1.6 %"

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        return BIGINT

    def fold(self, measure: Measure) -> MeasureFold:
        argument, type_ = measure.argument(), measure.arguments[0].type
        if type_ in (FLOAT, DOUBLE):
            # -0.0 equals 0.0, but its text is different.
            argument = f"if(({argument}) = 0, '0.0', cast({argument} as string))"
        elif type_ not in (INT, BIGINT):
            # The sketch ignores empty texts.
            text = argument if type_ == STRING else f"cast({argument} as string)"
            argument = f"if(({text}) = '', '{_EMPTY}', {text})"
        merge = (
            "case when {old} is null then {new} when {new} is null then {old} "
            "else hll_union({old}, {new}) end"
        )
        return MeasureFold(
            {"sketch": StateField(BINARY, f"hll_sketch_agg({argument})", merge)},
            "coalesce(hll_sketch_estimate(hll_union({sketch}, {sketch})), 0)",
        )


MEMBER = ApproxCountDistinct()
