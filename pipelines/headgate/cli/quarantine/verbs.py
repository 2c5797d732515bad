"""``headgate quarantine list | show | export | replay | cancel``: refused records."""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import (
    DEFAULT_ROOT,
    DryRun,
    Json,
    Limit,
    Note,
    PipelineName,
    Root,
    SourceName,
    command,
)
from headgate.cli.output import grid, require_new, respond, write_new
from headgate.cli.quarantine.replaying import documents, replay_records
from headgate.cli.quarantine.selecting import (
    EventId,
    Reason,
    Rule,
    Since,
    TableName,
    Until,
    nothing_meant,
    records_of,
    selection,
    source_meant,
    sources_meant,
)
from headgate.cli.rows import as_text, cells
from headgate.cli.sources import SourceLabels
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.history.replay import requests
from headgate.history.replay.corrections import exported_records
from headgate.history.replay.refused import RefusedRecord
from headgate.lake.control.requests import remove_request

app = typer.Typer(
    help="Refused records: show them, correct and replay them. They are in quarantine, or a rule "
    "has rejected them.",
    no_args_is_help=True,
)


@app.command("list")
def list_refused(
    pipeline: PipelineName,
    source: SourceName = None,
    table: TableName = None,
    rule: Rule = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Count refused records by table and reason. A record that breaks several rules is in several
    lines. The replaced ones have a good copy in the tables."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    sources, labels = sources_meant(declared, source, table), SourceLabels(declared.sources)
    wanted = replace(
        selection(declared, sources, table, rule, reason, None, since, until), with_replaced=True
    )
    found = [records_of(layout, declared, each) for each in sources]
    groups = [(each.source.name, group) for each in found for group in each.groups(wanted)]
    lines = (
        (*labels.cell(name), e.table, e.reason, e.open, e.replaced, e.newest) for name, e in groups
    )
    headers = (*labels.header, "table", "reason or rule", "open:", "replaced:", "newest")
    shown = grid("", *headers, rows=lines)
    reached = {each.source.name: {"n": each.bronze.n, "behind": each.behind} for each in found}
    document = {
        "pipeline": declared.name,
        "refused": [
            {**labels.field(name), **vars(each), "newest": each.newest.isoformat()}
            for name, each in groups
        ],
        **labels.facts(reached),
    }
    if not groups:
        respond(json, document, nothing_meant(found, wanted))
        return
    behind = [
        f"{labels.before(each.source.name)}not yet processed up to batch {each.bronze.n:,}: "
        + ", ".join(each.behind)
        for each in found
        if each.behind
    ]
    replayed = command(
        "quarantine replay", *["--source", groups[0][0]] * labels.several, "--dry-run"
    )
    respond(json, document, shown, *behind, command("quarantine show"), replayed)


@app.command("show")
def show_refused(
    pipeline: PipelineName,
    source: SourceName = None,
    table: TableName = None,
    rule: Rule = None,
    reason: Reason = None,
    event_id: EventId = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show open refused records with their bytes, in the order of the log."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    sources, labels = sources_meant(declared, source, table), SourceLabels(declared.sources)
    wanted = selection(declared, sources, table, rule, reason, event_id, since, until)
    found = [records_of(layout, declared, each) for each in sources]
    rows: list[tuple[str, RefusedRecord]] = []
    for records in found:
        rows += [(records.source.name, row) for row in records.rows(wanted, limit - len(rows))]
    has_items = any(each.items for _, each in rows)
    place = ("record", "items") if has_items else ("record",)
    headers = (*labels.header, *place, "table", "id", "reason or rules", "detail", "value")
    shown = grid("", *headers)
    for name, each in rows:
        items = (", ".join(map(str, each.items)),) if has_items else ()
        at, why = (*labels.cell(name), each.position, *items), ", ".join(each.reasons)
        value = as_text(each.value)
        shown.add_row(*cells(*at, each.table, each.event_id, why, each.detail, value))
    records_shown = [{**labels.field(name), **_document(each)} for name, each in rows]
    document = {"pipeline": declared.name, "records": records_shown}
    respond(json, document, shown if rows else nothing_meant(found, wanted))


def _document(row: RefusedRecord) -> dict[str, object]:
    time = row.event_time and row.event_time.isoformat()
    return {
        "record": str(row.position),
        **({"items": list(row.items)} if row.items else {}),
        "table": row.table,
        "event_id": row.event_id,
        "event_time": time,
        "reasons": list(row.reasons),
        "column": row.column,
        "detail": row.detail,
        "where": row.where,
        "ingested_at": row.ingested_at.isoformat(),
        "value": as_text(row.value),
    }


@app.command("export")
def export_refused(
    pipeline: PipelineName,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new file of JSON lines.")],
    source: SourceName = None,
    table: TableName = None,
    rule: Rule = None,
    reason: Reason = None,
    event_id: EventId = None,
    since: Since = None,
    until: Until = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Write open refused records into a file, one JSON object a line. Change `value`, and replay
    them with --edited."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    meant, labels = source_meant(declared, source, table), SourceLabels(declared.sources)
    wanted = selection(declared, [meant], table, rule, reason, event_id, since, until)
    require_new(output)
    corrected = documents(declared, layout, records_of(layout, declared, meant), wanted)
    exported = exported_records(corrected, meant.name if labels.several else None)
    lines = [json_.dumps(each, ensure_ascii=False) + "\n" for each in exported]
    write_new(output, "".join(lines))
    respond(
        json,
        {
            "pipeline": declared.name,
            **labels.field(meant.name),
            "records": len(lines),
            "output": str(output),
        },
        f"wrote {plural(len(lines), 'record')} to {output}",
        command(
            "quarantine replay",
            *["--source", meant.name] * labels.several,
            *("--edited", str(output), "--dry-run"),
        ),
    )


@app.command("replay")
def replay(
    pipeline: PipelineName,
    source: SourceName = None,
    table: TableName = None,
    rule: Rule = None,
    reason: Reason = None,
    event_id: EventId = None,
    since: Since = None,
    until: Until = None,
    patch: Annotated[
        str | None,
        typer.Option("--patch", metavar="SQL", help="An SQL expression that gives the new record."),
    ] = None,
    edited: Annotated[
        Path | None, typer.Option("--edited", help="What `export` wrote, edited by you.")
    ] = None,
    dry_run: DryRun = False,
    note: Note = "",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Let open refused records that are good now go through bronze, silver and gold, under their
    ids. All others stay where they are. Rows whose windows are final go to the late tables."""
    if patch is not None and edited is not None:
        raise typer.BadParameter("give --patch or --edited", param_hint="--edited")
    declared, layout = declaration.opened(pipeline, root)
    meant = source_meant(declared, source, table)
    wanted = selection(declared, [meant], table, rule, reason, event_id, since, until)
    chosen = declared, layout, root, meant, wanted
    replay_records(*chosen, patch, edited, note, dry_run=dry_run, json=json)


@app.command("cancel")
def cancel(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Take a replay back that waits for a driver. What a driver has carried out stays."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    request = requests.waiting_replay(layout)
    if request is None:
        raise HeadgateError(
            f"{declared.name}: no replay waits for a driver", command("quarantine list")
        )
    remove_request(layout, request)
    document = requests.ReplayDocument.of(request)
    # A driver that reads requests from now on does not find it. One may have read it before.
    if (done := requests.committed_replay(layout, declared.name, request)) is not None:
        raise HeadgateError(
            f"{declared.name}: the replay of {plural(done.rows, 'record')} cannot be taken back: "
            f"it was carried out as batch {done.n:,}",
            command("ledger", "--by-id"),
        )
    of = SourceLabels(declared.sources).field(document.source)
    respond(
        json,
        {"pipeline": declared.name, **of, "cancelled": request.id, "records": document.rows},
        f"the replay of {plural(document.rows, 'record')} is cancelled; they stay refused",
    )
