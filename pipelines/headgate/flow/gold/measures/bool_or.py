"""``bool_or(condition)``."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import Logical


class Or(Logical):
    result = "boolean; whether it is true for any row"
    name, synonyms = "bool_or", ("any", "some")


MEMBER = Or("max", "greatest")
