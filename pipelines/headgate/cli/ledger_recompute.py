"""``headgate ledger --recompute``: compares gold with its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli import log_file
from headgate.cli.declaration import gold_table
from headgate.cli.driving import (
    give_the_stream_priority,
    require_java,
    session_beside_the_stream,
)
from headgate.cli.options import command, time_option, time_range
from headgate.cli.output import Shown, grid
from headgate.cli.rows import rows_shown
from headgate.cli.screen import waiting
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.history.backfill.selection import EventTimeRange
    from headgate.history.recompute.report import Recomputation, RecomputedTable

Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="With --recompute: only this gold table, such as gold.per_minute. Once for each.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    time_option("--from", "With --recompute: only windows that begin at or after it. UTC."),
]
To = Annotated[
    str | None, time_option("--to", "With --recompute: only windows that end at or before it.")
]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ranges_of(
    declared: Pipeline,
    tables: Sequence[str] | None,
    begin: str | None,
    end: str | None,
    *,
    is_recomputed: bool,
) -> Mapping[str, EventTimeRange]:
    """The range that is compared of each gold table, by name; none without ``--recompute``. Raises
    BadParameter, UsageError."""
    for option, given in (("--table", tables), ("--from", begin), ("--to", end)):
        if given and not is_recomputed:
            raise typer.BadParameter("only with --recompute", param_hint=option)
    if not is_recomputed:
        return {}

    from headgate.history.backfill.selection import LATEST, EventTimeRange
    from headgate.history.recompute.plan import require_ranges

    first, last = time_range(begin, end, datetime.now(UTC))
    names = dict.fromkeys(gold_table(declared, name).name for name in tables or declared.gold)
    if begin or end:
        require_ranges(declared.gold[name] for name in names)
    wanted = EventTimeRange(
        -LATEST if first is None else (first - _EPOCH) // timedelta(microseconds=1),
        LATEST if last is None else (last - _EPOCH) // timedelta(microseconds=1),
    )
    return dict.fromkeys(names, wanted)


def recomputed(
    declared: Pipeline, layout: Layout, ranges: Mapping[str, EventTimeRange]
) -> Recomputation:
    """Raises as ``history.recompute.computing.recompute``."""
    from headgate.history.recompute.computing import recompute

    require_java()
    give_the_stream_priority()
    log_file.divert_to(layout, "recompute")
    with (
        waiting("computing gold again from silver"),
        session_beside_the_stream("headgate-recompute") as spark,
    ):
        return recompute(spark, layout, declared, ranges, datetime.now(UTC))


def shown_again(found: Recomputation) -> Iterator[Shown]:
    """The counts of every table, then the first rows that differ."""
    headers = ("recomputed", "batch:", "equal:", "changed:", "missing:", "extra:", "corrected:")
    rows = (
        (t.table, t.n, t.equal, t.changed, t.missing, t.extra, sum(t.corrected.values()))
        for t in found.tables
    )
    yield grid("", *headers, rows=rows)
    for table in found.tables:
        yield from _of_table(table)
    yield (
        "✓ every result is that of its definition"
        if found.holds
        else "✗ not every result is that of its definition"
    )


def _of_table(table: RecomputedTable) -> Iterator[Shown]:
    from headgate.history.recompute.report import NAMES

    name = f"gold.{table.table}"
    for id_, rows in table.corrected.items():
        yield f"{name}: {plural(rows, 'result')} corrected by backfill {id_}"
    if table.is_empty:
        yield f"{name} has no result in this range: nothing was compared"
    if table.differing:
        yield f"✗ {name} does not have the results of its definition:"
        yield rows_shown(shown := table.rows.first(), "definition", NAMES)
        yield f"  {shown.count}"
        if shown.window:
            begin = str(next(shown.lines).window[0])
            yield f"compare final windows with bronze: {command('backfill', name, '--from', begin)}"
        yield f"or build the table again: {command('run', '--full-refresh', name)}"
