"""The options that say which refused records are meant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.cli.times import time_given
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.replay.refused import RefusedRecords, Selection
    from headgate.storage.layout import Layout

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
    typer.Option(
        "--since",
        metavar="TIME",
        help='Records ingested since then: "2026-01-31 12:00", or "2 hours" ago. Times are UTC.',
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Records ingested before then.")
]


class NoSuchTableError(HeadgateError, code=exit_codes.USAGE):
    """No refused records have this table's name."""


def selection(
    declared: Pipeline,
    table: str | None,
    rule: str | None,
    reason: str | None,
    event_id: str | None,
    since: str | None,
    until: str | None,
) -> Selection:
    """Raises NoSuchTableError, BadParameter."""
    from headgate.replay.refused import Selection, names_of

    names = list(names_of(declared))
    if table is not None and table not in names:
        raise NoSuchTableError(
            f"{declared.name} has no refused records in a table {table!r}",
            remedy=f"there are: {', '.join(names)}",
        )
    now = datetime.now(UTC)
    begins, ends = time_given(since, "--since", now), time_given(until, "--until", now)
    return Selection(table, rule, reason, event_id, begins, ends)


def records_of(layout: Layout, declared: Pipeline) -> RefusedRecords:
    from headgate.querying.without_pandas import leave_pandas_out

    leave_pandas_out()
    from headgate.replay.refused import RefusedRecords

    return RefusedRecords(layout, declared)
