"""What the releases of a gold table accept, and whether they accept all that breaks a rule.

A release accepts what a person has seen: of a rule about rows, the rows that broke it, as long as
they do not change; of a rule about the whole table, the observed value. It accepts this wherever it
is seen again: in later versions, after a restart or a restore, and in a rebuild. A row that is new
or has changed was not seen, and holds a version again.

What is accepted is written as tokens: the digest of the rule and that of the row, or the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from headgate.declaration.expectations.aggregates import CUT
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule, rule_digest

ROW = "row:"
"""What the digest of a row begins with."""
MOST_ROWS = 1_000
"""If more rows break a rule, a release is for the one version only."""


def with_tokens(
    result: RuleResult, rule: Rule, rows: Sequence[str] | None, version: str
) -> RuleResult:
    """A result that holds a version, with what a release accepts. ``rows`` are the digests of the
    rows that break the rule; None if the rule is not about rows, or they are not all known.
    ``version`` names the version: nothing else is accepted if neither all rows nor the whole value
    are known."""
    found: Sequence[str] = [version]
    if rows is not None:
        found = rows
    elif result.error is None and result.unexpected is None:
        value = result.observed or "no value"
        found = result.accepts or ([version] if CUT in value else [value])
    return replace(result, accepts=tuple(token(rule, each) for each in found))


def token(rule: Rule, what: str) -> str:
    """``what`` is the digest of a row, or an observed value."""
    return f"{rule_digest(rule)} {what}"


def with_releases(
    results: Iterable[RuleResult],
    rules: Mapping[str, Rule],
    accepted: Collection[str],
    of_rebuild: Collection[str],
) -> tuple[RuleResult, ...]:
    """The results, released where ``accepted`` has all that breaks a rule. With ``mostly``, rows
    that are accepted count as meeting the rule. ``of_rebuild`` are the tokens of releases of the
    very rebuild that is validated. They accept a rule about the whole table with any value, because
    a rebuild has to follow the current table, and its values change, until it is published."""
    whole = {each.partition(" ")[0] for each in of_rebuild if not _is_of_row(each)}

    def judge(result: RuleResult) -> RuleResult:
        if not (result.holds and result.accepts):
            return result
        left = [each for each in result.accepts if each not in accepted]
        if not _is_of_row(result.accepts[0]):
            rule = result.accepts[0].partition(" ")[0]
            return replace(result, is_released=not left or rule in whole)
        mostly = rules[result.rule].arguments.get("mostly", 1)
        counted = (result.rows or 0) - result.ignored
        is_released = not left or counted - len(left) >= Fraction(str(mostly)) * counted
        released = len(result.accepts) - len(left)
        return replace(result, is_released=is_released, released=released)

    return tuple(map(judge, results))


def _is_of_row(token: str) -> bool:
    return token.partition(" ")[2].startswith(ROW)
