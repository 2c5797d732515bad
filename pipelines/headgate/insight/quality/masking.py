"""Hides values of rows in a report, unless the reader asks for them."""

from __future__ import annotations

from dataclasses import replace

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.versions import OBSERVE_VALUES


def masked(text: str) -> str:
    """The text with its letters and digits replaced, so that its form can still be seen."""
    return "".join("x" if c.isalpha() else "9" if c.isdigit() else c for c in text)


def without_values(result: RuleResult, rule: Rule | None) -> RuleResult:
    """The result without what may be a value of a row: some rules observe one, and an error may
    quote one. ``rule`` is None if it is not known any more."""
    if result.error is not None:
        result = replace(result, error="it could not be validated")
    if result.observed is not None and (rule is None or rule.expectation in OBSERVE_VALUES):
        result = replace(result, observed=masked(result.observed))
    return result
