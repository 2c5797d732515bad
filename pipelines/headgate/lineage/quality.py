"""What rules have said of a table lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.declaration.kinds import GOLD, SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.suites.model import Suite, count_key
from headgate.gates.validations import validations
from headgate.graph.graph import Node
from headgate.storage.layout import Layout
from headgate.tables.table import Table


@dataclass(frozen=True)
class Verdict:
    """``holds``: rows or versions that break the rule are kept back. ``says`` is for a person."""

    rule: str
    met: bool
    holds: bool
    says: str


def verdicts(declared: Pipeline, layout: Layout, node: Node) -> Sequence[Verdict]:
    """Of gold: the newest validation. Of silver: all rows that the table has ever judged. Raises
    HeadgateError if the table is damaged."""
    if node.kind == GOLD:
        found = validations(layout, node.name)
        results = found[-1].results if found else ()
        return [Verdict(each.rule, each.met, each.action == "hold", each.seen) for each in results]
    suite = declared.silver[node.name].suite if node.kind == SILVER else None
    if suite is None:
        return ()
    table = Table(layout.storage, node.path, pipeline=declared.name)
    return _of_rows(suite, table.refresh().total) if table.exists else ()


def _of_rows(suite: Suite, total: Mapping[str, int]) -> Sequence[Verdict]:
    broken = {rule.id: total.get(count_key(rule.id), 0) for rule in suite.rules}
    return [
        Verdict(rule.id, not broken[rule.id], rule.quarantines, f"{broken[rule.id]} rows break it")
        for rule in suite.rules
    ]
