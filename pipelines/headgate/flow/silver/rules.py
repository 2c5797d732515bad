"""The rules of a suite as columns of silver's query.

The rules that a row breaks are the bits of an integer, because integers are cheap to compute, to
compare and to pass on. Only rows with a bit set get the ids of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.kinds import SILVER
from headgate.declaration.quantities import is_above
from headgate.declaration.suites.model import Rule, Suite
from headgate.errors import HeadgateError

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


class RuleStopsError(HeadgateError, code=exit_codes.SOURCE):
    """More rows of a batch break a rule than it allows. Nothing of the batch is in silver."""


def exceeded(suite: Suite, broken: Mapping[str, int], rows: int) -> Iterator[Rule]:
    """The rules that more rows of a batch break than they allow. ``rows`` is the number of rows
    that passed the table's ``where``, ``broken`` how many of them break each rule."""
    for rule in suite.rules:
        if rule.above is not None and is_above(broken.get(rule.id, 0), rule.above, rows):
            yield rule


def require_below_ceilings(table: str, suite: Suite, broken: Mapping[str, int], rows: int) -> None:
    """Raises RuleStopsError if a batch exceeds the ceiling of a rule."""
    for rule in exceeded(suite, broken, rows):
        count = broken[rule.id]
        raise RuleStopsError(
            f"{SILVER.path(table)}: {count:,} of {rows:,} rows break the rule {rule.id!r} "
            f"({rule.condition}), more than the {100 * (rule.above or 0):g} % at which it stops "
            "the stream",
            remedy=f"correct the source, or the rule in expectations/{suite.name}.yml (its action "
            f"quarantine rejects these rows and goes on), then: {pipeline_command('restart')}",
        )
