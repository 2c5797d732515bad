"""Variances and standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import DOUBLE, DataType
from headgate.flow.gold.measures.adding import counted, require_number

OF_SAMPLE = "double (of a sample; null for fewer than two values)"
OF_ALL = "double (of all values)"


class Spread(MeasureFunction):
    """The state is the count, the mean and the sum of squared differences.

    States are merged as in Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances" (1979). Sums of squares would lose precision by cancellation.
    """

    keeps = "a count, a mean and a sum of squared differences"

    name: ClassVar[str]
    of_sample: ClassVar[bool]
    is_root: ClassVar[bool]

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_number(self.name, arguments[0].type)
        return DOUBLE

    def fold(self, measure: Measure) -> MeasureFold:
        value = f"cast(({measure.argument()}) as double)"
        joint = "{old.n} * {new.n} / cast({old.n} + {new.n} as double)"
        mean = "{old.mean} + ({new.mean} - {old.mean}) * {new.n} / ({old.n} + {new.n})"
        squares = (
            f"{{old.squares}} + {{new.squares}} + ({{new.mean}} - {{old.mean}}) "
            f"* ({{new.mean}} - {{old.mean}}) * ({joint})"
        )
        fewer = int(self.of_sample)
        spread = f"{{squares}} / ({{n}} - {fewer})"
        spread = f"sqrt({spread})" if self.is_root else spread
        return MeasureFold(
            {
                "n": counted(measure),
                "mean": StateField(DOUBLE, f"avg({value})", _unless_empty("mean", mean)),
                "squares": StateField(
                    DOUBLE,
                    f"var_pop({value}) * count({value})",
                    _unless_empty("squares", squares),
                ),
            },
            f"case when {{n}} > {fewer} then {spread} end",
        )


def _unless_empty(field: str, both: str) -> str:
    return (
        f"case when coalesce({{old.n}}, 0) = 0 then {{new.{field}}} "
        f"when coalesce({{new.n}}, 0) = 0 then {{old.{field}}} else {both} end"
    )
