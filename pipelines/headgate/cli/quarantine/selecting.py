"""The options that select refused records."""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.cli.rows import as_text
from headgate.cli.times import time_range
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
    """No table of refused records has this name."""


class NoSuchReasonError(HeadgateError, code=exit_codes.USAGE):
    """No record goes to quarantine for this reason."""


def selection(
    declared: Pipeline,
    table: str | None,
    rule: str | None,
    reason: str | None,
    event_id: str | None,
    since: str | None,
    until: str | None,
) -> Selection:
    """Raises NoSuchTableError, NoSuchReasonError, BadParameter."""
    from headgate.replay.refused import Selection, names_of

    names = list(names_of(declared))
    if table is not None and table not in names:
        raise NoSuchTableError(
            f"{declared.name} has no refused records in a table {table!r}",
            remedy=f"there are: {', '.join(names)}",
        )
    _require_reason(reason)
    _require_possible(table, rule, reason)
    now = datetime.now(UTC)
    begins, ends = time_range(since, until, now, ("--since", "--until"))
    return Selection(table, rule, reason, event_id, begins, ends)


def _require_reason(given: str | None) -> None:
    """Raises NoSuchReasonError."""
    from headgate.bronze.reasons import Reason

    if given is None or given in list(Reason):
        return
    near = get_close_matches(given, list(Reason), 1)
    raise NoSuchReasonError(
        f"there is no reason {given!r}" + (f"; the nearest one is {near[0]}" if near else ""),
        remedy=f"there are: {', '.join(Reason)}; a rule's id is for --rule",
    )


def _require_possible(table: str | None, rule: str | None, reason: str | None) -> None:
    """Raises BadParameter for options that no record can match together."""
    in_quarantine = reason is not None or table == "quarantine"
    if rule is not None and in_quarantine:
        said = "a record that breaks a rule is in rejected.T, not in quarantine"
        raise typer.BadParameter(said, param_hint="--rule")
    if reason is not None and table not in (None, "quarantine"):
        said = f"it is only for records in quarantine, not in {table}"
        raise typer.BadParameter(said, param_hint="--reason")


def nothing_meant(records: RefusedRecords, wanted: Selection) -> str:
    """The message if no record is selected: whether there are others, and why they are refused."""
    everything = type(wanted)(with_replaced=wanted.with_replaced)
    others = [each for each in records.groups(everything) if each.open or wanted.with_replaced]
    which, was = ("record", "was") if wanted.with_replaced else ("open record", "is")
    if not others:
        return f"no {which} {was} refused"
    reasons = ", ".join(f"{each.reason} ({each.table})" for each in others)
    return f"no {which} matches {_options(wanted)}; there are some with: {reasons}"


def _options(wanted: Selection) -> str:
    given = {
        "--table": wanted.table,
        "--rule": wanted.rule,
        "--reason": wanted.reason,
        "--id": wanted.event_id,
        "--since": wanted.since,
        "--until": wanted.until,
    }
    return " ".join(f"{name} {as_text(value)}" for name, value in given.items() if value) or "it"


def records_of(layout: Layout, declared: Pipeline) -> RefusedRecords:
    from headgate.querying.without_pandas import leave_pandas_out

    leave_pandas_out()
    from headgate.replay.refused import RefusedRecords

    return RefusedRecords(layout, declared)
