"""``headgate expectations list``: which tables have suites, and how many rows broke each rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells
from headgate.declaration.kinds import SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.suites.model import Suite, count_key
from headgate.declaration.suites.plan import asked, suite_plan
from headgate.querying.without_pandas import leave_pandas_out
from headgate.storage.layout import Layout
from headgate.tables.table import Table


def list_suites(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """List the rules of a pipeline's tables, and how many rows of silver broke each since the table
    began."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    suites = [
        _suite(f"silver.{name}", table.suite, _totals(declared, layout, name))
        for name, table in declared.silver.items()
        if table.suite is not None
    ]
    suites += [
        _suite(f"gold.{name}", table.suite, None)
        for name, table in declared.gold.items()
        if table.suite is not None
    ]
    shown = grid("", "table", "rule", "action", "severity", "broken:", "asks")
    for suite in suites:
        for rule in suite["rules"]:
            broken = "-" if rule["broken"] is None else rule["broken"]
            asks = rule.get("condition") or asked(rule["expectation"], rule["arguments"])
            said = (rule["id"], _action(rule), rule["severity"], broken, asks)
            shown.add_row(*cells(suite["table"], *said))
    document = {"pipeline": declared.name, "suites": suites}
    respond(json, document, shown if suites else f"no table of {declared.name} has a suite")


def _suite(table: str, suite: Suite, totals: Mapping[str, int] | None) -> dict[str, Any]:
    """``broken`` is None if nothing is counted: for gold, whose rules are about versions, and for a
    table that does not exist yet."""
    planned = suite_plan(suite)["suite"]
    rules = [
        {"id": id_, **rule, "broken": None if totals is None else totals.get(count_key(id_), 0)}
        for id_, rule in planned["rules"].items()
    ]
    return {"table": table, "suite": suite.name, "digest": suite.digest, "rules": rules}


def _action(rule: Mapping[str, Any]) -> str:
    above = f" above {rule['above'] * 100:g} %" if "above" in rule else ""
    return f"{rule['action']}{above}"


def _totals(declared: Pipeline, layout: Layout, name: str) -> Mapping[str, int] | None:
    """The counts of a silver table so far; None if the table does not exist yet."""
    leave_pandas_out()
    table = Table(layout.storage, SILVER.path(name), pipeline=declared.name)
    return table.refresh().total if table.exists else None
