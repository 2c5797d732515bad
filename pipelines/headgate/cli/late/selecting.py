"""Selects late rows by the options of a command, counts them and reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli import log_file
from headgate.cli.driving import require_java
from headgate.cli.rows import as_text
from headgate.cli.screen import waiting as shown_waiting
from headgate.cli.times import time_range
from headgate.declaration.kinds import LATE
from headgate.declaration.model import GoldTable, Pipeline
from headgate.operations import late_replay
from headgate.operators.contract import is_final
from headgate.querying.sql import select
from headgate.storage.layout import Layout
from headgate.tables.snapshot import snapshot
from headgate.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help='Rows with an event time from then on: "2026-01-31 12:00", or "2 days" ago. UTC.',
    ),
]
To = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Rows with an event time before then.")
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="NAME=VALUE",
        help="Rows with this value of a column of `by`; NAME=null for none. For each column once.",
    ),
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LateCount:
    """The numbers of waiting and of replayed pairs in a late table. ``oldest`` and ``newest`` are
    the first and the last event time of the waiting pairs."""

    table: str
    waiting: int
    replayed: int
    oldest: datetime | None
    newest: datetime | None


def selection(
    table: GoldTable, begin: str | None, end: str | None, keys: Sequence[str] | None
) -> dict[str, Any]:
    """The document of a replay (``operations.late_replay``). Raises BadParameter."""
    given = time_range(begin, end, datetime.now(UTC))
    first, last = (None if t is None else (t - _EPOCH) // timedelta(microseconds=1) for t in given)
    return late_replay.meant(table.name, first, last, _keys(table, keys or ()))


def _keys(table: GoldTable, given: Sequence[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    names = [each.name for each in table.by]
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--key")
        if name not in names:
            said = f"gold.{table.name} has no column {name!r} in by"
            raise typer.BadParameter(
                f"{said}; there are: {', '.join(names) or 'none'}", param_hint="--key"
            )
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--key")
        found[name] = None if value == "null" else value
    return found


def counts(declared: Pipeline, layout: Layout) -> list[LateCount]:
    """The late rows of each gold table, without Spark."""
    found = []
    for name in declared.gold:
        sql = (
            "SELECT count(*) FILTER (replayed IS NULL), count(replayed), "
            "min(_event_time) FILTER (replayed IS NULL), "
            f"max(_event_time) FILTER (replayed IS NULL) FROM late.{name}"
        )
        if not late_replay.has_marks(_late_table(declared, layout, name)):
            sql = f"SELECT count(*), 0, min(_event_time), max(_event_time) FROM late.{name}"
        ((waiting, replayed, oldest, newest),) = select(declared, layout, sql)[1]
        found.append(LateCount(name, waiting, replayed, oldest, newest))
    return found


def nothing_meant(
    count: LateCount, begin: str | None, end: str | None, keys: Sequence[str] | None
) -> str:
    """The message if no late row is selected: whether other rows wait, and their range of event
    times."""
    if not count.waiting:
        return "no late row waits"
    given = [("--from", begin), ("--to", end), *(("--key", key) for key in keys or ())]
    options = " ".join(f"{name} {value}" for name, value in given if value is not None)
    times = f"from {as_text(count.oldest)} to {as_text(count.newest)}"
    return f"no late row matches {options}; {count.waiting:,} wait, with event times {times}"


def require_marks(declared: Pipeline, layout: Layout, table: GoldTable) -> None:
    """Raises UsageError for a late table of an older version, which has no column for the marks."""
    late_replay.require_marks(_late_table(declared, layout, table.name))


def _late_table(declared: Pipeline, layout: Layout, name: str) -> Any:
    """Raises HeadgateError if the pipeline has no tables."""
    table = Table(layout.storage, LATE.path(name), pipeline=declared.name)
    try:
        table.refresh()
    except FileNotFoundError:
        snapshot(layout, declared)  # raises an error that says what to type
        raise
    return table


def rows_of(
    declared: Pipeline,
    layout: Layout,
    table: GoldTable,
    wanted: dict[str, Any],
    limit: int | None = None,
    *,
    only_of_final: bool = False,
) -> pa.Table:
    """The selected late rows that wait, in the order of event time, and at most ``limit`` of them.
    With ``only_of_final``, only the rows that a replay would fold now, because their results are
    final. Spark reads them, as in the replay, because a column of ``by`` may be any expression."""
    require_marks(declared, layout, table)
    require_java()
    log_file.divert_to(layout, "late")
    from headgate.gold.late_replay import LATE_TIME, Selection
    from headgate.jobs.session import passing_session
    from headgate.tables.frames import Rows

    late, chosen = _late_table(declared, layout, table.name), Selection.of(wanted)
    with (
        shown_waiting("reading late rows"),
        passing_session("headgate-late", os.cpu_count() or 2) as spark,
    ):
        rows = Rows(spark, late).of(chosen.files(late)).where(chosen.has(table))
        if only_of_final:
            opened = partial(Table, layout.storage, pipeline=declared.name)
            rows = rows.where(is_final(spark, opened, table))
        rows = rows.orderBy(LATE_TIME, "_partition", "_offset")
        return (rows if limit is None else rows.limit(limit)).toArrow()
