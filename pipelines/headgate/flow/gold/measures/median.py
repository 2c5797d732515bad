"""``median(x)``."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.declaration.model import MeasureArgument
from headgate.flow.gold.measures.percentile import Percentile


class Median(Percentile):
    result = "double; as percentile(x, 0.5)"
    takes = ("x",)
    also_called = ()
    constant = ""
    name = "median"

    def share(self, arguments: Sequence[MeasureArgument]) -> float:
        return 0.5


MEMBER = Median()
