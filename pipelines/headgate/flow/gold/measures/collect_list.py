"""``collect_list(x, n)``."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.declaration.model import Measure, MeasureArgument
from headgate.flow.gold.measures.extremes import POSITION
from headgate.flow.gold.measures.lists import FirstRows


class CollectList(FirstRows):
    """The first values by event time. The position in the source breaks ties. Nulls are left
    out."""

    result = "array of x's type; the n values with the earliest event times; nulls do not count"
    keeps = "n values at most and their positions"
    also_called = ("array_agg", "collect_set", "list_agg", "listagg", "string_agg")
    takes = ("x", "n")
    name, function = "collect_list", "min_by"

    def _order(self, measure: Measure) -> Mapping[str, MeasureArgument]:
        return POSITION

    def _needed(self, measure: Measure) -> str:
        return measure.argument()


MEMBER = CollectList()
