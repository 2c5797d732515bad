"""What a report shows of values of rows to a reader who has not asked for them."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.tables import OBSERVE_VALUES
from headgate.expectations.result import RuleResult


def masked(text: str) -> str:
    """The text with its letters and digits replaced, so that its form can still be seen."""
    return "".join("x" if c.isalpha() else "9" if c.isdigit() else c for c in text)


def seen(result: RuleResult, rules: Mapping[str, Rule], *, show_values: bool) -> str:
    """What a rule looked at. An observed value may be one of a row, and an error may quote one."""
    if show_values:
        return result.seen
    if result.error is not None:
        return "could not be validated"
    rule = rules.get(result.rule)
    may_show = rule is not None and rule.expectation not in OBSERVE_VALUES
    return result.seen if may_show else masked(result.seen)
