"""``avg(x)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import DOUBLE, DataType, Decimal, is_decimal
from headgate.flow.gold.measures.adding import (
    LONGEST,
    cast,
    counted,
    require_summable,
    summed,
    total,
)

_SHORT = 28
"""The quotient of a sum of this many digits has ten more decimals than the sum. Spark gives fewer
decimals if the sum is longer."""


class Average(MeasureFunction):
    result = "decimal(p + 4, s + 4) for decimal(p, s); double for others"
    keeps = "a sum, exact for integers and decimals, and a count"
    synonyms = ("mean",)
    also_called = ("average",)

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_summable("avg", argument := arguments[0].type)
        if is_decimal(argument):
            return Decimal(min(38, argument.precision + 4), min(38, argument.scale + 4))
        return DOUBLE

    def fold(self, measure: Measure) -> MeasureFold:
        if is_decimal(argument := measure.arguments[0].type):
            longest = min(LONGEST, argument.precision + 10)
            digits = sorted({max(argument.scale, min(_SHORT, longest)), longest})
            each = (
                cast(_quotient(measure, Decimal(d, argument.scale)), measure.type) for d in digits
            )
            value = f"coalesce({', '.join(each)})"
        else:
            value = f"cast({total(measure)} as double) / {{n}}"
        return MeasureFold(
            {"n": counted(measure), **summed(measure)},
            f"case when {{n}} > 0 then {cast(value, measure.type)} end",
        )


def _quotient(measure: Measure, sum_: Decimal) -> str:
    return f"{cast(total(measure), sum_)} / cast({{n}} as decimal(19,0))"


MEMBER = Average()
