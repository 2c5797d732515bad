"""``last(x)`` by event time."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import Edge


class Last(Edge):
    result = "the argument's type; the value with the latest event time; nulls do not count"
    synonyms = ("last_value",)


MEMBER = Last("max", "greatest")
