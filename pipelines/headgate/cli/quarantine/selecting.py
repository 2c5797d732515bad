"""The options that select refused records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli.declaration import named
from headgate.cli.options import as_typed, time_option, time_range
from headgate.cli.rows import as_text
from headgate.cli.sources import the_source
from headgate.declaration.kinds import REJECTED
from headgate.declaration.model import Pipeline, Source
from headgate.flow.bronze.reasons import Reason as Kind
from headgate.history.replay.refused import RefusedRecords, RefusedSelection, refused_table_names
from headgate.insight.querying.without_pandas import leave_pandas_out
from headgate.lake.storage.layout import Layout

TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="TABLE", help="quarantine, or rejected.T."),
]
Rule = Annotated[
    str | None, typer.Option("--rule", metavar="ID", help="Records that break this rule.")
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="R", help="Records in quarantine for this reason."),
]
EventId = Annotated[str | None, typer.Option("--id", metavar="ID", help="Records with this id.")]
Since = Annotated[
    str | None,
    time_option(
        "--since",
        'Records ingested since then: "2026-01-31 12:00", or "2 hours" ago. Times are UTC.',
    ),
]
Until = Annotated[str | None, time_option("--until", "Records ingested before then.")]


def sources_meant(declared: Pipeline, source: str | None, table: str | None) -> list[Source]:
    """The source that --source names, or the one of the table that --table names; otherwise all
    sources. Raises UsageError."""
    if source is not None:
        return [the_source(declared, source)]
    silver = declared.silver.get((table or "").removeprefix(f"{REJECTED.name}."))
    return [*declared.sources.values()] if silver is None else [declared.sources[silver.source]]


def source_meant(declared: Pipeline, source: str | None, table: str | None) -> Source:
    """As ``sources_meant``, if it must be one source. Raises UsageError."""
    found = sources_meant(declared, source, table)
    return found[0] if len(found) == 1 else the_source(declared, source)


def selection(
    declared: Pipeline,
    sources: Sequence[Source],
    table: str | None,
    rule: str | None,
    reason: str | None,
    event_id: str | None,
    since: str | None,
    until: str | None,
) -> RefusedSelection:
    """Raises UsageError, BadParameter."""
    if table is not None:
        what = f"{declared.name} has no refused records in a table"
        known = refused_table_names(declared, [each.name for each in sources])
        named({each: each for each in known}, table, what)
    if reason is not None:
        reasons = {str(each): each for each in Kind}
        named(reasons, reason, "there is no reason", "; a rule's id is for --rule")
    _require_possible(table, rule, reason)
    now = datetime.now(UTC)
    begins, ends = time_range(since, until, now, ("--since", "--until"))
    return RefusedSelection(table, rule, reason, event_id, begins, ends)


def _require_possible(table: str | None, rule: str | None, reason: str | None) -> None:
    """Raises BadParameter for options that no record can match together."""
    in_quarantine = reason is not None or table == "quarantine"
    if rule is not None and in_quarantine:
        said = "a record that breaks a rule is in rejected.T, not in quarantine"
        raise typer.BadParameter(said, param_hint="--rule")
    if reason is not None and table not in (None, "quarantine"):
        said = f"it is only for records in quarantine, not in {table}"
        raise typer.BadParameter(said, param_hint="--reason")


def nothing_meant(found: Sequence[RefusedRecords], wanted: RefusedSelection) -> str:
    """The message if no record is selected: whether there are others, and why they are refused."""
    everything = type(wanted)(with_replaced=wanted.with_replaced)
    groups = (each for records in found for each in records.groups(everything))
    others = [each for each in groups if each.open or wanted.with_replaced]
    which, was = ("record", "was") if wanted.with_replaced else ("open record", "is")
    if not others:
        return f"no {which} {was} refused"
    reasons = ", ".join(dict.fromkeys(f"{each.reason} ({each.table})" for each in others))
    return f"no {which} matches {_options(wanted)}; there are some with: {reasons}"


def _options(wanted: RefusedSelection) -> str:
    given = {
        "--table": wanted.table,
        "--rule": wanted.rule,
        "--reason": wanted.reason,
        "--id": wanted.event_id,
        "--since": wanted.since,
        "--until": wanted.until,
    }
    texts = ((name, None if at is None else as_text(at)) for name, at in given.items())
    return as_typed(texts) or "it"


def records_of(layout: Layout, declared: Pipeline, source: Source) -> RefusedRecords:
    leave_pandas_out()
    return RefusedRecords(layout, declared, source)
