"""``sum(x)``."""

from __future__ import annotations

from headgate.declaration.expressions import datatypes
from headgate.declaration.measures import Fold, MeasureKind
from headgate.declaration.model import Measure
from headgate.measures.adding import cast, require_number, summed


class Sum(MeasureKind):
    result = "bigint for integers; decimal(p + 10, s) for decimal(p, s); double for others"
    keeps = "a sum, exact for integers and decimals"

    def type_of(self, argument: str) -> str:
        require_number("sum", argument)
        if datatypes.is_decimal(argument):
            precision, scale = datatypes.digits(argument) or (0, 0)
            return datatypes.decimal(min(38, precision + 10), scale)
        return "bigint" if argument in datatypes.INTEGRALS else "double"

    def fold(self, measure: Measure) -> Fold:
        return Fold({"sum": summed(measure)}, cast("{sum}", measure.type))


MEMBER = Sum()
