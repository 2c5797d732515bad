"""The options that say which refused records are meant."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
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
    begins, ends = _time(since, "--since", now), _time(until, "--until", now)
    return Selection(table, rule, reason, event_id, begins, ends)


def _time(text: str | None, option: str, now: datetime) -> datetime | None:
    """A time in UTC; a duration counts back from now."""
    from headgate.declaration.errors import Invalid
    from headgate.declaration.quantities import parse_duration

    if text is None:
        return None
    try:
        with suppress(Invalid):
            return now - parse_duration(text)
        given = datetime.fromisoformat(text)
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        said = f'{text!r} is neither a time ("2026-01-31 12:00") nor a duration ("2 hours")'
        raise typer.BadParameter(said, param_hint=option) from error


def records_of(layout: Layout, declared: Pipeline) -> RefusedRecords:
    from headgate.cli.without_pandas import leave_pandas_out

    leave_pandas_out()
    from headgate.replay.refused import RefusedRecords

    return RefusedRecords(layout, declared)
