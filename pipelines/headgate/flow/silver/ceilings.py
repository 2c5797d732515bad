"""Rules with the action ``stop``: if too many rows of a batch break such a rule, the batch is
refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.kinds import SILVER
from headgate.declaration.quantities import is_above
from headgate.declaration.suites.model import Rule, Suite
from headgate.errors import HeadgateError


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
            f"quarantine rejects these rows and goes on), then: {pipeline_command('start')}",
        )
