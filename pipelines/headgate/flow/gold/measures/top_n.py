"""``top_n(x, order, n)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.typed import shown
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import DataType, is_nested
from headgate.flow.gold.measures.extremes import POSITION
from headgate.flow.gold.measures.lists import FirstRows


class TopN(FirstRows):
    """The values at the greatest orders, the greatest first. Of rows with equal orders, the last
    one comes first, as in ``max_by``. Rows whose order is null are left out."""

    result = (
        "array of x's type; its values, also null, at the n greatest orders, the greatest first; "
        "of equal orders, the last row first"
    )
    keeps = "n values at most, their orders and their positions"
    also_called = ("top_k", "max_n")
    takes = ("x", "order", "n")
    name, function = "top_n", "max_by"

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        if is_nested(order := arguments[1].type):
            raise Invalid(f"top_n() takes one value as order, not {shown(order)}")
        return super().type_of(arguments)

    def _order(self, measure: Measure) -> Mapping[str, MeasureArgument]:
        return {
            "order": MeasureArgument(self._needed(measure), measure.arguments[1].type),
            **POSITION,
        }

    def _needed(self, measure: Measure) -> str:
        return measure.argument(1)


MEMBER = TopN()
