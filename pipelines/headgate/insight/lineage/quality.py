"""The latest results of a table's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.declaration.graph import Node
from headgate.declaration.kinds import GOLD, SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.suites.model import Suite, count_key
from headgate.flow.gates.validations import Validation, validations
from headgate.insight.quality.masking import without_values
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class RuleOutcome:
    """``holds``: whether rows or versions that break the rule are held back. ``description`` has no
    value of a row, because a receiver may show it to anyone."""

    rule: str
    met: bool
    holds: bool
    description: str


def rule_outcomes(declared: Pipeline, layout: Layout, node: Node) -> Sequence[RuleOutcome]:
    """For gold: the validation of the newest version that readers can see. For silver: all rows
    that were ever validated. Raises HeadgateError if the table is damaged."""
    if node.kind == GOLD:
        newest = (each for each in reversed(validations(layout, node.name)) if _is_visible(each))
        return _of_version(next(newest, None))
    suite = declared.silver[node.name].suite if node.kind == SILVER else None
    if suite is None:
        return ()
    table = Table(layout.storage, node.path, pipeline=declared.name)
    return _of_rows(suite, table.refresh().total) if table.exists else ()


def _is_visible(validation: Validation) -> bool:
    """Whether readers can see the version: it is neither held nor a version of a rebuild."""
    return not validation.log and validation.outcome != "held"


def _of_version(validation: Validation | None) -> Sequence[RuleOutcome]:
    if validation is None:
        return ()
    rules = {rule.id: rule for rule in validation.suite.rules}
    results = [without_values(each, rules.get(each.rule)) for each in validation.results]
    return [RuleOutcome(each.rule, each.met, each.action == "hold", each.seen) for each in results]


def _of_rows(suite: Suite, total: Mapping[str, int]) -> Sequence[RuleOutcome]:
    broken = {rule.id: total.get(count_key(rule.id), 0) for rule in suite.rules}
    return [
        RuleOutcome(
            rule.id, not broken[rule.id], rule.quarantines, f"{broken[rule.id]} rows break it"
        )
        for rule in suite.rules
    ]
