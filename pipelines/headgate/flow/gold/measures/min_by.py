"""``min_by(x, order)``."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import ValueAt


class MinBy(ValueAt):
    result = "x's type; its value, or null, at the least order; of equal orders, in the first row"


MEMBER = MinBy("min", "least")
