"""``headgate late list | show | replay``: rows that came too late for their windows."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.late.replaying import replay_rows
from headgate.cli.late.selecting import (
    From,
    Key,
    LateCount,
    To,
    counts,
    nothing_meant,
    rows_of,
    selection,
)
from headgate.cli.named import gold_table
from headgate.cli.options import (
    DEFAULT_ROOT,
    MOST_SHOWN,
    GoldName,
    Json,
    PipelineName,
    Root,
    command,
)
from headgate.cli.output import grid, respond
from headgate.cli.rows import as_text, cells, table_of

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
    document = {"pipeline": declared.name, "late": [_document(each) for each in found]}
    respond(json, document, shown, *words)


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
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MOST_SHOWN, help="At most so many rows.")
    ] = 20,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show late rows that wait, in the order of their event times."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    gold = gold_table(declared, table)
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and write nothing.")
    ] = False,
    note: Annotated[str, typer.Option("--note", help="Kept in bronze's commits.")] = "",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Fold late rows into the final rows of their windows. A row of gold that changes has the next
    revision, and publications send it."""
    declared, layout = declaration.opened(pipeline, root)
    gold = gold_table(declared, table)
    wanted = selection(gold, begin, end, key)
    replay_rows(declared, layout, root, gold, wanted, note, dry_run=dry_run, json=json)
