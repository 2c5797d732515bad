"""``max_by(x, order)``."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import ValueAt


class MaxBy(ValueAt):
    result = "x's type; its value, or null, at the greatest order; of equal orders, in the last row"


MEMBER = MaxBy("max", "greatest")
