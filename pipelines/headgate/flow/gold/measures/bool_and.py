"""``bool_and(condition)``."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import Logical


class And(Logical):
    result = "boolean; whether it is true for all rows"
    name, synonyms = "bool_and", ("every",)


MEMBER = And("min", "least")
