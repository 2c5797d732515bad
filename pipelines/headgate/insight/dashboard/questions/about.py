"""What a page shows of a gold table besides charts: which version, how fresh, how much is late."""

from __future__ import annotations

from typing import Any

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.kinds import GOLD, LATE, QUARANTINE, SILVER
from headgate.flow.gates.documents import holds
from headgate.insight.dashboard.questions.selection import span
from headgate.insight.dashboard.questions.view import GoldView
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.reading.versions import ReleasedVersion
from headgate.lake.tables.payloads.silver import records_in
from headgate.lake.tables.state import time_of


def about(view: GoldView) -> dict[str, Any]:
    """``n`` is the batch id of the shown version, ``held`` is the reason why a later one is not
    visible."""
    shown, facts, found = view.shown, view.facts, span(view)
    operator, declared = operator_of(view.table), view.table.operator
    lines = (operator.summary(declared), *operator.details(declared))
    return {
        "pipeline": shown.name,
        "table": facts.table,
        "operator": "; ".join(f"{label}: {line}" for label, line in lines),
        "reads": view.table.reads,
        "counts": "rows" if operator.appends else "pairs",
        "keys": facts.keys,
        "figures": [{"name": f.name, "type": f.type, "across": f.across} for f in facts.figures],
        "begin": facts.begin,
        "columns": list(view.version.schema.names),
        "span": found and {"first": found.first / 1e6, "end": found.end / 1e6},
        **summary(shown, facts.table, view.version),
        "held": held(shown, facts.table),
    }


def summary(shown: Shown, table: str, gold: ReleasedVersion) -> dict[str, Any]:
    """The numbers of a table from its commits. A share is None if nothing was read yet."""
    state = gold.state
    late = state.total.get("late", 0) - state.total.get("replayed", 0)
    pairs = state.total.get("pairs", 0)
    return {
        "version": gold.number,
        "n": state.n,
        "rows": gold.rows,
        "final": state.total.get("final", 0),
        "changed": _iso(state.changed_at),
        "pairs": pairs,
        "late": late,
        "late_share": late / pairs if pairs and not shown.gold(table).is_rollup else None,
        "replayed": state.total.get("replayed", 0),
        **refused(shown, table),
    }


def refused(shown: Shown, table: str) -> dict[str, Any]:
    """How many of the records that a gold table is made of were quarantined or rejected.
    ``rules_of`` are its silver tables that have rules, ``sources`` the sources of all."""
    inputs = [shown.pipeline.silver[name] for name in shown.gold(table).inputs]
    versions = ((each, shown.version(SILVER.path(each.name))) for each in inputs)
    totals = [(each, version.state.total) for each, version in versions if version is not None]
    # The tables of a source count the same records.
    of_sources = {each.source: total for each, total in totals}
    read = sum(map(records_in, of_sources.values()))
    quarantined = sum(total.get("quarantined", 0) for total in of_sources.values())
    return {
        "read": read,
        "quarantined": quarantined,
        "quarantined_share": quarantined / read if read else None,
        "rejected": sum(total.get("rejected", 0) for _, total in totals),
        "rules_of": [each.name for each in inputs if each.suite is not None],
        "sources": [*dict.fromkeys(each.source for each in inputs)],
    }


def held(shown: Shown, table: str) -> dict[str, Any] | None:
    """Why the newest version is held back; None if none is. The observed values are left out,
    because they may be values of rows."""
    for hold in holds(shown.layout, shown.pipeline):
        if hold.table == table and not hold.log:
            rules = [result.rule for result in hold.failed]
            since = hold.since.isoformat()
            return {"upto": hold.upto, "since": since, "rules": rules}
    return None


def paths_behind(shown: Shown, table: str) -> tuple[str, ...]:
    """The tables that the page of a gold table reads."""
    declared = shown.gold(table)
    silver = map(SILVER.path, declared.inputs)
    quarantine = map(QUARANTINE.path, dict.fromkeys(declared.sources))
    return (GOLD.path(table), LATE.path(table), *silver, *quarantine)


def _iso(micros: int | None) -> str | None:
    return None if micros is None else time_of(micros).isoformat()
