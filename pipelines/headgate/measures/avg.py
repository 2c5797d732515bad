"""``avg(x)``."""

from __future__ import annotations

from headgate.declaration.expressions import datatypes
from headgate.declaration.measures import Fold, MeasureKind
from headgate.declaration.model import Measure
from headgate.measures.adding import cast, counted, digits, require_number, summed


class Average(MeasureKind):
    result = "decimal(p + 4, s + 4) for decimal(p, s); double for others"
    keeps = "a sum, exact for integers and decimals, and a count"
    also_called = ("mean", "average")

    def type_of(self, argument: str) -> str:
        require_number("avg", argument)
        if datatypes.is_decimal(argument):
            precision, scale = datatypes.digits(argument) or (0, 0)
            return datatypes.decimal(min(38, precision + 4), min(38, scale + 4))
        return "double"

    def fold(self, measure: Measure) -> Fold:
        if known := digits(measure.argument_type):
            # Narrowed first: Spark would give a full-width sum only six digits after the point.
            narrow = f"decimal({min(38, known[0] + 10)},{known[1]})"
            value = f"cast({{sum}} as {narrow}) / cast({{n}} as decimal(19,0))"
        else:
            value = "cast({sum} as double) / {n}"
        return Fold(
            {"n": counted(measure), "sum": summed(measure)},
            f"case when {{n}} > 0 then {cast(value, measure.type)} end",
        )


MEMBER = Average()
