"""The results of rules for a version of a table."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.suites.model import Action, Rule, Severity


@dataclass(frozen=True)
class RuleResult:
    """The result of a rule for a version. ``observed`` is the observed value as text. If the rule
    is about rows, ``unexpected`` of ``rows`` rows break it, and it does not look at ``ignored`` of
    them. ``error`` is why it could not be validated; it then counts as not met.

    ``accepts`` is what a release of the version accepts of the rule (``flow.gates.releases``).
    ``is_released``: earlier releases have accepted all of it; of rows, they have accepted
    ``released``."""

    rule: str
    severity: Severity
    action: Action
    met: bool
    observed: str | None = None
    unexpected: int | None = None
    error: str | None = None
    rows: int | None = None
    ignored: int = 0
    accepts: tuple[str, ...] = ()
    is_released: bool = False
    released: int = 0

    @staticmethod
    def of(
        rule: Rule, *, met: bool = False, observed: str | None = None, error: str | None = None
    ) -> RuleResult:
        """The result of a rule that is not about rows."""
        return RuleResult(rule.id, rule.severity, rule.action, met, observed, error=error)

    @property
    def holds(self) -> bool:
        """Whether it holds the version back."""
        return not self.met and self.action == "hold" and not self.is_released

    @property
    def seen(self) -> str:
        """The observation, for a message."""
        if self.error is not None:
            return self.error
        if self.unexpected is not None and self.observed is None:
            rows = "1 row breaks" if self.unexpected == 1 else f"{self.unexpected:,} rows break"
            return f"{rows} it" + (f", {self.released:,} of them released" if self.released else "")
        return f"it is {self.observed}"

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.rule} ({self.severity}) could not be validated: {self.error}"
        return f"{self.rule} ({self.severity}): {'met' if self.met else 'not met'}, {self.seen}"
