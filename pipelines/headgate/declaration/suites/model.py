"""The content of a suite, as immutable values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

Severity = Literal["critical", "warning", "info"]
Action = Literal["quarantine", "warn", "stop", "hold"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
RULE_COUNT = "rule:"
"""The prefix of the names of the counts of rules."""
MOST_RULES = 62
"""The maximum number of rules of a suite: silver has a bit of a bigint for each rule."""


ROW_ACTIONS: tuple[Action, ...] = ("quarantine", "warn", "stop")
"""What can follow if a row of a silver table breaks a rule, the default first."""
TABLE_ACTIONS: tuple[Action, ...] = ("hold", "warn")
"""What can follow if a version of a gold table breaks a rule, the default first."""


@dataclass(frozen=True)
class Rule:
    """``expectation`` is the name of an expectation, with its ``arguments`` as plain values. It is
    None for a rule that is an SQL condition: ``sql``, as it is written. ``row_condition``, as it is
    written, selects the rows that are checked; empty for all rows. ``condition`` is the complete
    Spark SQL condition that a row must meet. It is never null, with one exception: in a rule of a
    gold table that is an expectation about rows, it is null for rows that the expectation ignores.
    A rule about a whole version has no condition.

    ``above``: the action ``stop`` stops the stream if a larger share of a batch's rows, between 0
    and 1, breaks the rule. Up to this share, rows are quarantined.
    """

    id: str
    expectation: str | None
    arguments: Mapping[str, Any]
    condition: str = ""
    severity: Severity = "critical"
    action: Action = "quarantine"
    above: float | None = None
    sql: str = ""
    row_condition: str = ""

    @property
    def quarantines(self) -> bool:
        """Whether a row that breaks the rule is kept out of the table."""
        return self.action != "warn"


def complete(condition: str, row_condition: str = "") -> str:
    """The condition of a rule, never null, from its parts in parentheses."""
    parts = f"not coalesce({row_condition}, false) or {condition}" if row_condition else condition
    return f"coalesce({parts}, true)"


def count_key(rule: str) -> str:
    """The name under which silver's commits count the rows that break a rule."""
    return f"{RULE_COUNT}{rule}"


@dataclass(frozen=True)
class Suite:
    """The rules of one table. ``text`` is the suite as it was read.

    A suite of a gold table is validated before each commit that changes rows. If ``every`` is
    given, batches are validated at most once in this time; with ``on_final``, only if rows become
    final.
    """

    name: str
    rules: tuple[Rule, ...]
    every: timedelta = timedelta(0)
    on_final: bool = False
    text: str = field(default="", repr=False, compare=False)

    def encode(self) -> dict[str, Any]:
        """The name and the rules, as JSON values."""
        return {"name": self.name, "rules": [dict(vars(rule)) for rule in self.rules]}

    @staticmethod
    def decode(content: Mapping[str, Any]) -> Suite:
        """Raises KeyError or TypeError if ``content`` is not a result of ``encode``."""
        return Suite(content["name"], tuple(Rule(**rule) for rule in content["rules"]))

    @property
    def digest(self) -> str:
        """The SHA-256 of the meaning of the rules, in hexadecimal. Comments and layout do not
        count."""
        meant = [_meaning(rule) for rule in self.rules]
        return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()


def rule_digest(rule: Rule) -> str:
    """A digest of what a rule demands, whatever follows if it is broken."""
    asks = [rule.id, rule.condition, rule.expectation, dict(rule.arguments)]
    text = json.dumps(asks, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _meaning(rule: Rule) -> list[Any]:
    asks = rule.condition or [rule.expectation, rule.arguments]
    return [rule.id, asks, rule.severity, rule.action, rule.above]
