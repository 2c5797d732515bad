"""A suite in the output of ``headgate plan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.expressions.spark import as_written
from headgate.declaration.suites.model import Rule, Suite


def suite_plan(suite: Suite | None, **more: Any) -> dict[str, Any]:
    """The key ``suite`` of a table's plan, with ``more``; empty without a suite."""
    if suite is None:
        return {}
    rules = {rule.id: _rule(rule) for rule in suite.rules}
    return {"suite": {"name": suite.name, "digest": suite.digest, **more, "rules": rules}}


def _rule(rule: Rule) -> dict[str, Any]:
    described = {
        "expectation": rule.expectation,
        **({"condition": rule.condition} if rule.condition else {"arguments": rule.arguments}),
        "severity": rule.severity,
        "action": rule.action,
    }
    return described if rule.above is None else {**described, "above": rule.above}


def asked(expectation: str | None, arguments: Mapping[str, Any]) -> str:
    """A rule without a condition, as a suite writes it."""
    given = (f"{name}: {_written(value)}" for name, value in arguments.items())
    return " ".join([str(expectation), ", ".join(given)]).rstrip()


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def suite_lines(table: Mapping[str, Any]) -> list[str]:
    """The suite of a table's plan as text, one line per rule."""
    suite = table.get("suite")
    if suite is None:
        return []
    goes = f", rejected rows: {suite['rejected']}" if "rejected" in suite else ""
    lines = [f"  suite    {suite['name']} ({suite['digest'][:16]}){goes}"]
    for name, rule in suite["rules"].items():
        above = f" above {rule['above'] * 100:g} %" if "above" in rule else ""
        how = f"{rule['severity']}, {rule['action']}{above}"
        condition = as_written(rule.get("condition", ""))
        asks = condition or asked(rule["expectation"], rule["arguments"])
        lines.append(f"  rule     {name} ({how}): {asks}")
    return lines
