"""``headgate late list | show | replay``: rows that came too late for their windows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate import exit_codes
from headgate.cli import declaration, log_file
from headgate.cli.declaration import table_with_late_rows
from headgate.cli.driving import require_java, require_machine
from headgate.cli.late_corrected import left_out, require_not_corrected
from headgate.cli.options import (
    DEFAULT_ROOT,
    DryRun,
    GoldName,
    Json,
    Limit,
    Note,
    PipelineName,
    Root,
    as_typed,
    command,
    time_option,
    time_range,
)
from headgate.cli.output import grid, respond
from headgate.cli.requesting import PATIENCE, await_request, carried_out, person
from headgate.cli.rows import as_text, cells, table_of
from headgate.cli.screen import waiting as shown_waiting
from headgate.commands import pipeline_command
from headgate.declaration.contracts.operator import begin_of, operator_of
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD, LATE
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.names import SILVER_IDENTITY
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import tables_held
from headgate.flow.gold.stage import gold_stage_of
from headgate.flow.operations import late_replay
from headgate.insight.querying.sql import select
from headgate.lake.control.requests import Request, send_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import snapshot
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


From = Annotated[
    str | None,
    time_option(
        "--from",
        'Rows with an event time from then on: "2026-01-31 12:00", or "2 days" ago. UTC.',
    ),
]
To = Annotated[str | None, time_option("--to", "Rows with an event time before then.")]
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
    """The document of a replay (``flow.operations.late_replay``). Raises BadParameter."""
    given = time_range(begin, end, datetime.now(UTC))
    first, last = (None if t is None else (t - _EPOCH) // timedelta(microseconds=1) for t in given)
    return late_replay.replay_document(table.name, first, last, _keys(table, keys or ()))


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
    for name in declared.with_late_rows:
        sql = (
            "SELECT count(*) FILTER (replayed IS NULL), count(replayed), "
            "min(_event_time) FILTER (replayed IS NULL), "
            f"max(_event_time) FILTER (replayed IS NULL) FROM late.{name}"
        )
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
    times = f"from {as_text(count.oldest)} to {as_text(count.newest)}"
    return (
        f"no late row matches {as_typed(given)}; {count.waiting:,} wait, with event times {times}"
    )


def _late_table(declared: Pipeline, layout: Layout, name: str) -> Table:
    """The late table of a gold table. Raises HeadgateError if the pipeline has no tables."""
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
    late = _late_table(declared, layout, table.name)
    require_java()
    log_file.divert_to(layout, "late")
    from headgate.driver.session import passing_session
    from headgate.flow.gold.late_replay import LATE_TIME, LatePairSelection
    from headgate.lake.tables.frames import TableRows

    chosen = LatePairSelection.of(wanted)
    with (
        shown_waiting("reading late rows"),
        passing_session("headgate-late", os.cpu_count() or 2) as spark,
    ):
        rows = TableRows(spark, late).of(chosen.files(late)).where(chosen.has(table))
        if only_of_final:
            opened = partial(Table, layout.storage, pipeline=declared.name)
            rows = rows.where(gold_stage_of(spark, opened, table).can_replay())
        rows = rows.orderBy(LATE_TIME, *SILVER_IDENTITY)
        return (rows if limit is None else rows.limit(limit)).toArrow()


@dataclass(frozen=True)
class Replayed:
    """``pairs`` were folded after batch ``n``, by the operation ``number``."""

    number: int
    n: int
    pairs: int


def replay_rows(
    declared: Pipeline,
    layout: Layout,
    root: str,
    table: GoldTable,
    wanted: dict[str, Any],
    note: str,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Show what would be folded, or request the replay and wait for it. Raises HeadgateError if
    the replay would take back what a published backfill has corrected, did not take place, is not
    done yet, or breaks the table's rules."""
    require_machine(declared)
    name = f"gold.{table.name}"
    _late_table(declared, layout, table.name)  # raises if there are no tables
    require_not_corrected(declared, layout, table, wanted)
    if dry_run:
        rows = rows_of(declared, layout, table, wanted, only_of_final=True)
        operator = operator_of(table)
        becomes = "included" if operator.appends else "folded"
        said = f"{plural(len(rows), 'late row')} of {name} would be {becomes}"
        document = {"table": name, "pairs": len(rows)}
        # Otherwise, rows do not say which results they change.
        if not (operator.end_varies or operator.appends):
            document["windows"] = windows = _windows(rows, table)
            said += f", into {plural(windows, 'window')}"
        respond(json, {"pipeline": declared.name, **document}, said)
        return
    log_file.divert_to(layout, "late")
    request = _ask(layout, wanted, note)
    done = await_request(
        declared,
        root,
        lambda: _state(declared, layout, table, request),
        gone=HeadgateError(
            f"{name}: the request no longer exists, and no table has carried it out",
            remedy=f"see what happened: {pipeline_command('logs')}",
        ),
        waits=HeadgateError(
            f"{name} has not carried the replay out within {PATIENCE:.0f} s; it will do so",
            remedy=f"{pipeline_command('status')}; a gate may hold the table: "
            + pipeline_command("gate status"),
        ),
    )
    document = {"table": name, "pairs": done.pairs, "n": done.n, "operation": done.number}
    replayed = plural(done.pairs, "late row")
    for each in left_out(declared, layout):  # a backfill was published since the request
        if each.table == table.name and each.operation == done.number:
            raise HeadgateError(f"{each.why}; replayed {replayed} of others", remedy=each.remedy)
    said = f"replayed {replayed} of {name}, after batch {done.n:,}"
    respond(
        json,
        {"pipeline": declared.name, **document},
        said if done.pairs else f"no late row of {name} was meant; nothing has changed",
        command("ledger", "--by-id"),
    )


def _windows(rows: Any, table: GoldTable) -> int:
    if not (begin := begin_of(table)):
        return min(len(rows), 1)
    return len(rows.column(begin[0]).unique())


def _ask(layout: Layout, wanted: Mapping[str, Any], note: str) -> Request:
    document = {**wanted, "by": person(note)}
    return send_request(layout, "late_replay", document, datetime.now(UTC))


def _state(
    declared: Pipeline, layout: Layout, table: GoldTable, request: Request
) -> tuple[Replayed | None, bool]:
    """The replay if gold has carried it out, and whether gold will still do so. Raises
    HeadgateError if a gate holds the table."""
    gold = Table(layout.storage, GOLD.path(table.name), pipeline=declared.name)
    operation, still = carried_out(declared, layout, request, [gold])
    if operation is not None and still:
        _require_free(declared, layout, table)
    if operation is None or still:
        return None, still
    pairs = _pairs(declared, layout, table, operation.number)
    source = graph_of(declared).numbered_by(gold.name).name
    at = operation.position.get(source)
    return Replayed(operation.number, at.n if at else 0, pairs), False


def _require_free(declared: Pipeline, layout: Layout, table: GoldTable) -> None:
    """Raises HeadgateError if a gate holds the table: a person has to decide."""
    hold = tables_held(layout, declared).get(table.name)
    if hold is not None:
        raise HeadgateError(
            f"the replay waits: {hold.title} is held by its rules: {hold.why}",
            remedy=f"see what can be done: {pipeline_command('gate status')}",
            code=exit_codes.HELD,
        )


def _pairs(declared: Pipeline, layout: Layout, table: GoldTable, number: int) -> int:
    sql = f"SELECT count(*) FROM late.{table.name} WHERE replayed = {number}"
    return int(select(declared, layout, sql)[1][0][0])


app = typer.Typer(
    help="Late rows: show them, fold them into the final rows.",
    no_args_is_help=True,
)


@app.command("list")
def list_late(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Count the late rows of each gold table: those that wait, and those that were replayed. A row
    counts once for each window that it is late for."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = counts(declared, layout)
    shown = grid("", "gold", "waiting:", "replayed:", "oldest event", "newest event")
    for each in found:
        times = (time and as_text(time) for time in (each.oldest, each.newest))
        shown.add_row(*cells(each.table, each.waiting, each.replayed, *times))
    waits = [each.table for each in found if each.waiting]
    words = [command("late replay", f"gold.{waits[0]}", "--dry-run")] if waits else []
    left = [each for each in left_out(declared, layout) if each.table in waits]
    lines = [f"{each.why}: replay {each.operation} has left them out" for each in left]
    document = {
        "pipeline": declared.name,
        "late": [_document(each) for each in found],
        "left_out": [each.document() for each in left],
    }
    respond(json, document, shown, *lines, *words)


def _document(count: LateCount) -> dict[str, object]:
    times = {name: getattr(count, name) for name in ("oldest", "newest")}
    return {**vars(count), **{k: t and t.isoformat() for k, t in times.items()}}


@app.command("show")
def show_late(
    pipeline: PipelineName,
    table: GoldName,
    begin: From = None,
    end: To = None,
    key: Key = None,
    limit: Limit = 20,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show late rows that wait, in the order of their event times."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    gold = table_with_late_rows(declared, table)
    wanted = selection(gold, begin, end, key)
    rows = rows_of(declared, layout, gold, wanted, limit)
    lines = [tuple(row.values()) for row in rows.to_pylist()]
    document = {
        "pipeline": declared.name,
        "table": f"gold.{gold.name}",
        "rows": [dict(zip(rows.column_names, map(as_text, line), strict=True)) for line in lines],
    }
    if lines:
        respond(json, document, table_of("", rows.column_names, lines))
        return
    (waiting,) = (each for each in counts(declared, layout) if each.table == gold.name)
    respond(json, document, nothing_meant(waiting, begin, end, key))


@app.command("replay")
def replay_late(
    pipeline: PipelineName,
    table: GoldName,
    begin: From = None,
    end: To = None,
    key: Key = None,
    dry_run: DryRun = False,
    note: Note = "",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Fold late rows into the final rows of their windows. A row of gold that changes has the next
    revision, and publications send it."""
    declared, layout = declaration.opened(pipeline, root)
    gold = table_with_late_rows(declared, table)
    wanted = selection(gold, begin, end, key)
    replay_rows(declared, layout, root, gold, wanted, note, dry_run=dry_run, json=json)
