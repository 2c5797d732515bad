"""``sum(x)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, DOUBLE, INTEGRALS, DataType, Decimal, is_decimal
from headgate.flow.gold.measures.adding import require_summable, summed, total


class Sum(MeasureFunction):
    result = (
        "bigint for integers; decimal(p + 10, s) for decimal(p, s); double for others. Null if it "
        "does not fit, or has more than 37 digits"
    )
    keeps = "a sum, exact for integers and decimals"
    adds_up = True

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_summable("sum", argument := arguments[0].type)
        if is_decimal(argument):
            return Decimal(min(38, argument.precision + 10), argument.scale)
        return BIGINT if argument in INTEGRALS else DOUBLE

    def fold(self, measure: Measure) -> MeasureFold:
        # A plain cast would wrap around.
        return MeasureFold(summed(measure), f"try_cast({total(measure)} as {measure.type})")


MEMBER = Sum()
