"""What rules say of a version of a table."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.suites.model import Action, Severity


@dataclass(frozen=True)
class RuleResult:
    """What a rule says of a version. ``observed`` is the value that it looked at, as text;
    ``unexpected`` the number of rows that break it, if it is about rows, of ``rows``. ``error`` is
    why it could not be validated; it is not met then."""

    rule: str
    severity: Severity
    action: Action
    met: bool
    observed: str | None = None
    unexpected: int | None = None
    error: str | None = None
    rows: int | None = None

    @property
    def holds(self) -> bool:
        """Whether it holds the version back."""
        return not self.met and self.action == "hold"

    @property
    def seen(self) -> str:
        """What it looked at."""
        if self.error is not None:
            return self.error
        if self.unexpected is not None and self.observed is None:
            return f"{self.unexpected:,} rows break it"
        return f"it is {self.observed}"

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.rule} ({self.severity}) could not be validated: {self.error}"
        return f"{self.rule} ({self.severity}): {'met' if self.met else 'not met'}, {self.seen}"
