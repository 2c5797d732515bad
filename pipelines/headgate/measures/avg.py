"""``avg(x)``."""

from __future__ import annotations

from headgate.declaration.measures import Fold, MeasureKind
from headgate.declaration.model import Measure
from headgate.declaration.types import DOUBLE, DataType, Decimal, is_decimal
from headgate.measures.adding import cast, counted, require_number, summed


class Average(MeasureKind):
    result = "decimal(p + 4, s + 4) for decimal(p, s); double for others"
    keeps = "a sum, exact for integers and decimals, and a count"
    also_called = ("mean", "average")

    def type_of(self, argument: DataType) -> DataType:
        require_number("avg", argument)
        if is_decimal(argument):
            return Decimal(min(38, argument.precision + 4), min(38, argument.scale + 4))
        return DOUBLE

    def fold(self, measure: Measure) -> Fold:
        if is_decimal(argument := measure.argument_type):
            # Narrow the sum first: Spark gives the quotient of a full-width sum only six decimals.
            narrow = Decimal(min(38, argument.precision + 10), argument.scale)
            value = f"{cast('{sum}', narrow)} / cast({{n}} as decimal(19,0))"
        else:
            value = "cast({sum} as double) / {n}"
        return Fold(
            {"n": counted(measure), "sum": summed(measure)},
            f"case when {{n}} > 0 then {cast(value, measure.type)} end",
        )


MEMBER = Average()
