"""The rules of a suite as columns of silver's query.

The rules that a row breaks are the bits of an integer, because integers are cheap to compute, to
compare and to pass on. Only rows with a bit set get the ids of the rules.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.declaration.suites.model import Suite

MASK = "_broken"


class RowRules:
    """Columns over the rows to which the table's ``where`` also applies."""

    def __init__(self, suite: Suite) -> None:
        self._rules = suite.rules

    def mask(self) -> Column:
        """The bits of the rules that a row breaks."""
        bits = (
            F.when(F.expr(rule.condition), F.lit(0)).otherwise(F.lit(1 << index))
            for index, rule in enumerate(self._rules)
        )
        return reduce(Column.__add__, (bit.cast("bigint") for bit in bits))

    def rejects(self) -> Column:
        """Whether a row breaks a rule that keeps it out of silver, from its mask."""
        wanted = sum(1 << index for index, rule in enumerate(self._rules) if rule.quarantines)
        return F.col(MASK).bitwiseAND(F.lit(wanted)) != F.lit(0)

    def warnings(self) -> Column:
        """The ids of the broken rules, from the mask; null if there are none."""
        ids = (
            F.when(F.col(MASK).bitwiseAND(F.lit(1 << index)) != F.lit(0), F.lit(rule.id))
            for index, rule in enumerate(self._rules)
        )
        return F.when(F.col(MASK) != F.lit(0), F.array_compact(F.array(*ids)))
