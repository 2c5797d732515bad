"""``first(x)`` by event time."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import Edge


class First(Edge):
    result = "the argument's type; the value with the earliest event time; nulls do not count"
    synonyms = ("first_value",)
    also_called = ("any_value", "arbitrary")


MEMBER = First("min", "least")
