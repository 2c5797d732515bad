"""``headgate quarantine replay``: validates corrected records, and requests their replay."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli import log_file
from headgate.cli.driving import jars_for, require_machine
from headgate.cli.options import command
from headgate.cli.output import console, grid, respond
from headgate.cli.quarantine.selecting import nothing_meant, records_of
from headgate.cli.requesting import PATIENCE, await_request, person
from headgate.cli.rows import cells
from headgate.cli.screen import waiting
from headgate.cli.sources import SourceLabels
from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import SILVER
from headgate.declaration.model import Pipeline, Source
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.history.replay import corrections, requests
from headgate.history.replay.corrections import CorrectedRecord, as_refused
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.history.replay.requests import ReplayDocument, committed_replay
from headgate.history.replay.requests import waiting_replay as waits
from headgate.lake.control.requests import Request
from headgate.lake.storage.documents import new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import Replay
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    from headgate.history.replay.outcomes import ReplayOutcome

MOST = 100_000
"""The most records of one replay. They form one batch, and are in memory at the same time."""
SHOWN = 20
_POLL = 0.5  # seconds
_STAYS = {
    "invalid": "it is still invalid",
    "rejected": "it still breaks a rule",
    "filtered": "the `where` of the silver tables leaves it out",
    "known": "the tables have decided on a valid copy of it",
    "other id": "it has another id",
}


def documents(
    declared: Pipeline, layout: Layout, records: RefusedRecords, wanted: RefusedSelection
) -> list[CorrectedRecord]:
    """The selected open records, as documents that can be edited. Raises HeadgateError if they
    are more than one replay may have."""
    found = records.rows(wanted, MOST + 1)
    if len(found) > MOST:
        raise HeadgateError(
            f"more than {MOST:,} refused records are meant",
            remedy="take them in parts, with --since and --until, --table, --rule or --reason",
        )
    place = DeployedSource(layout.storage, declared.name, records.source)
    connector = connector_of(records.source)
    return as_refused(found, lambda each: connector.document(place, each.where, each.value or b""))


def replay_records(
    declared: Pipeline,
    layout: Layout,
    root: str,
    source: Source,
    wanted: RefusedSelection,
    patch: str | None,
    edited: Path | None,
    note: str,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Validate the selected records of a source, and replay those that pass, except in a
    ``dry_run``."""
    require_machine(declared)
    if not dry_run:
        requests.require_no_replay(layout)
    records, labels = records_of(layout, declared, source), SourceLabels(declared.sources)
    corrected = documents(declared, layout, records, wanted)
    if patch is not None:
        corrected = corrections.patched_records(corrected, patch)
    if edited is not None:
        of = source.name if labels.several else None
        corrected = corrections.edited_records(corrected, edited, of)
    if not corrected:
        empty = f"{edited} has no record" if edited else nothing_meant([records], wanted)
        respond(json, _document(declared, source, []), empty)
        return
    log_file.divert_to(layout, "replay")
    with waiting(f"validating {plural(len(corrected), 'record')}"):
        made = corrections.corrected_copies(records, corrected, datetime.now(UTC))
        found = _validated(declared, layout, records, corrected, made)
    good = made.of(records.origin(o.corrected.position) for o in found if o.passes)
    if not json:
        _show(found)
    document = _document(declared, source, found)
    if dry_run or not len(good.rows):
        respond(json, document, "nothing was written" if dry_run else "nothing to replay")
        return
    request = _ask(layout, records, good, note)
    done = _carried_out(declared, layout, root, request)
    behind = _await_silver(declared, layout, source, done.n)
    left = len(found) - done.rows
    respond(
        json,
        {**document, "replayed": done.rows, "n": done.n},
        f"replayed {done.rows:,} as batch {done.n:,}"
        + (f" of {source.name}" if labels.several else "")
        + (f"; {left:,} stay refused" if left else ""),
        *(f"{each} has not processed it yet: {command('status')}" for each in behind),
        command("ledger", "--by-id"),
    )


def _validated(
    declared: Pipeline,
    layout: Layout,
    records: RefusedRecords,
    corrected: Sequence[CorrectedRecord],
    copies: CorrectedCopies,
) -> list[ReplayOutcome]:
    from headgate.driver.session import passing_session
    from headgate.history.replay.outcomes import replay_outcomes

    cores, jars = os.cpu_count() or 2, jars_for(declared)
    with passing_session("headgate-quarantine", cores, jars) as spark:
        return replay_outcomes(spark, layout, declared, records, corrected, copies)


def _ask(layout: Layout, records: RefusedRecords, good: CorrectedCopies, note: str) -> Request:
    now, source = datetime.now(UTC), records.source.name
    # Void if a replay or a reset came while the copies were validated.
    since = {"generation": records.generation, "before": records.replays}
    document = ReplayDocument(source=source, rows=len(good.rows), reason=person(note), **since)
    return requests.request_replay(layout, new_id(now), document, good.rows, now)


def _carried_out(declared: Pipeline, layout: Layout, root: str, request: Request) -> Replay:
    """Wait until bronze has the replay, and return it. The running driver takes it in; if none
    runs, one is started here, which ends after it. Raises HeadgateError if the replay did not
    take place."""
    return await_request(
        declared,
        root,
        lambda: _state(declared, layout, request),
        gone=HeadgateError(
            "the tables were reset, or another replay came first: nothing was replayed",
            remedy=f"see what is still refused: {pipeline_command('quarantine list')}",
        ),
        waits=HeadgateError(
            f"no driver has taken the replay in within {PATIENCE:.0f} s; it still waits",
            remedy=f"{pipeline_command('status')}, or take it back: "
            + pipeline_command("quarantine cancel"),
        ),
    )


def _await_silver(declared: Pipeline, layout: Layout, source: Source, n: int) -> list[str]:
    """Wait until all silver tables of a source have processed batch ``n``: before that, the records
    are still refused. Returns those that have not after a while."""
    ends = time.monotonic() + PATIENCE
    while True:
        tables = (
            Table(layout.storage, SILVER.path(name), pipeline=declared.name)
            for name, table in declared.silver.items()
            if table.source == source.name
        )
        behind = [table.name for table in tables if table.refresh().n < n]
        if not behind or time.monotonic() >= ends:
            return behind
        time.sleep(_POLL)


def _state(declared: Pipeline, layout: Layout, request: Request) -> tuple[Replay | None, bool]:
    """The replay if bronze has it, and whether the request still waits. The request is read before
    bronze, because it is removed after bronze's commit."""
    still = waits(layout)
    done = committed_replay(layout, declared.name, request)
    return done, still is not None and still.id == request.id


def _show(found: Sequence[ReplayOutcome]) -> None:
    counts = Counter((o.kind, o.why, o.tables, o.late) for o in found)
    summary = grid("", "outcome", "why", "records:")
    for (kind, why, tables, late), count in counts.most_common(SHOWN):
        told = f"goes to silver: {', '.join(tables)}" if tables else f"stays: {_STAYS[kind]}"
        told += f"; late for {', '.join(late)}" if late else ""
        summary.add_row(*cells(told, why, count))
    console().print(summary)


def _document(declared: Pipeline, source: Source, found: Sequence[ReplayOutcome]) -> dict[str, Any]:
    return {
        "pipeline": declared.name,
        **SourceLabels(declared.sources).field(source.name),
        "outcomes": dict(Counter(o.kind for o in found)),
        "records": [
            {
                "record": str(outcome.corrected.position),
                "event_id": outcome.corrected.of[0].event_id,
                "outcome": outcome.kind,
                "tables": list(outcome.tables),
                "late": list(outcome.late),
                "why": outcome.why,
            }
            for outcome in found
        ],
    }
