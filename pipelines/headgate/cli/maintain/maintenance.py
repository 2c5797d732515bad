"""``headgate compact | vacuum``: merges small files, and removes files that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import console, grid, respond
from headgate.cli.rows import cells
from headgate.cli.screen import waiting
from headgate.commands import pipeline_command
from headgate.declaration.errors import Invalid
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import parse_duration, plural, size_text
from headgate.driver.lease import Lease, TablesInUseError
from headgate.errors import HeadgateError
from headgate.history.maintenance.report import Amount, Compacted, MaintenanceReport, Vacuumed
from headgate.history.maintenance.requests import MaintenanceKind
from headgate.history.maintenance.retention import KEEP_WHY, LOG_WHY
from headgate.history.maintenance.retention_context import read_context
from headgate.history.maintenance.steps import compact_tables, vacuum_tables
from headgate.history.maintenance.vacuum import MOST_KEPT, list_files, plan_vacuum
from headgate.history.savepoints.clone import require_finished_clone
from headgate.lake.control.driver_requests import stop_requested
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.documents import encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import probe
from headgate.supervision.local import NotAliveError
from headgate.supervision.running_maintenance import maintain_running_jobs

KeepFor = Annotated[
    str,
    typer.Option(
        "--keep-for",
        metavar="TIME",
        help="Keep files that were in a table, or written, within this time, for running readers.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
]


def compact(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Merge the small files of a pipeline's tables."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    with waiting("merging small files"):
        reports = _maintain(declared, layout, "compact", timedelta())
    respond(json, _document(declared, reports), lambda: show_compacted(reports))


def vacuum(
    pipeline: PipelineName,
    keep_for: KeepFor = "24 hours",
    dry_run: DryRun = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Delete files and log entries that nothing needs."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    try:
        kept = parse_duration(keep_for)
    except Invalid as unfit:
        hint = f"; did you mean {unfit.nearest!r}?" if unfit.nearest else ""
        raise typer.BadParameter(f"{unfit.message}{hint}", param_hint="--keep-for") from unfit
    if kept > MOST_KEPT:
        why = f"{keep_for!r} is too long a time; at most {MOST_KEPT.days:,} days"
        raise typer.BadParameter(why, param_hint="--keep-for")
    if dry_run:
        reports = _planned(declared, layout, kept)
    else:
        with waiting("looking for files that nothing needs"):
            reports = _maintain(declared, layout, "vacuum", kept)
    document = _document(declared, reports) | {"dry_run": dry_run}
    respond(json, document, lambda: show_vacuumed(reports, dry_run=dry_run))


def _document(declared: Pipeline, reports: Iterable[MaintenanceReport]) -> dict[str, object]:
    return {"pipeline": declared.name, "tables": [encoded(report) for report in reports]}


def _planned(
    declared: Pipeline, layout: Layout, keep_for: timedelta
) -> tuple[MaintenanceReport, ...]:
    context, now = read_context(layout, declared), datetime.now(UTC)
    found = context.snapshot.tables
    tables = (found[node.path].table for node in graph_of(declared) if node.path in found)
    return tuple(plan_vacuum(t, list_files(t), context, keep_for, now).report for t in tables)


def _maintain(
    declared: Pipeline, layout: Layout, what: MaintenanceKind, keep_for: timedelta
) -> tuple[MaintenanceReport, ...]:
    """Running jobs maintain the tables that they write; this process maintains the rest."""
    found = probe(layout, datetime.now(UTC))
    for job in found:
        if job.operation is not None and job.is_alive:
            raise TablesInUseError(
                f"{job.owner} works on the tables: {job.operation}",
                remedy="it ends by itself; then try again",
            )
        if job.is_alive and not job.is_awaited and not stop_requested(layout, job.epoch):
            raise NotAliveError(
                f"{job.owner} is silent, and may still write",
                remedy=f"{pipeline_command('start')}, or: {pipeline_command('stop')}",
            )
    alive = [job for job in found if job.is_awaited]
    left = [layer for layer in LAYERS if all(layer not in job.layers for job in alive)]
    answers = maintain_running_jobs(layout, what, keep_for, alive) if alive else {}
    reports = [report for answer in answers.values() for report in answer.reports]
    for answer in answers.values():
        if answer.error is not None:
            raise HeadgateError(answer.error, answer.remedy, code=answer.exit_code)
    return (*reports, *(_here(declared, layout, left, what, keep_for) if left else ()))


def _here(
    declared: Pipeline,
    layout: Layout,
    layers: Sequence[str],
    what: MaintenanceKind,
    keep_for: timedelta,
) -> Iterator[MaintenanceReport]:
    """Maintain the tables of layers without a job, under a lease. Raises LeaseHeldError."""

    def now() -> datetime:
        return datetime.now(UTC)

    require_finished_clone(layout)
    found = read_context(layout, declared).snapshot.tables
    lease = Lease(layout, layers, declared.name, what)
    with lease.held() as epoch:
        written = graph_of(declared).written_by(layers)
        paths = (node.path for node in written if node.path in found)
        tables = [Table(layout.storage, path, pipeline=declared.name) for path in paths]
        for table in tables:
            table.fence(epoch)
        arguments = layout, declared, tables
        if what == "compact":
            yield from (r for r in compact_tables(*arguments, nullcontext, now) if r is not None)
        else:
            done = vacuum_tables(*arguments, keep_for, nullcontext, now)
            yield from (r for r in done if r is not None)


def show_compacted(reports: Sequence[MaintenanceReport]) -> None:
    done = [report for report in reports if isinstance(report, Compacted)]
    headers = ("table", "merged:", "size:", "into:", "size:", "small files left:")
    rows = ((e.table, *_amount(e.merged), *_amount(e.into), e.small.files) for e in done)
    console().print(grid("", *headers, rows=rows))
    merged = sum((each.merged for each in done), Amount())
    into = sum((each.into for each in done), Amount())
    if not merged.files:
        print("nothing to merge: no table has enough small files that all others have processed")
        return
    became = f"{plural(merged.files, 'file')} became {into.files:,}"
    print(f"{became}; vacuum removes what they were made from")


def show_vacuumed(reports: Sequence[MaintenanceReport], *, dry_run: bool) -> None:
    done = [report for report in reports if isinstance(report, Vacuumed)]
    headers = ("table", "removed:", "size:", "in use:", "size:", "kept:", "size:")
    table = grid("", *headers, "log entries removed:", "log from:", "because of")
    for each in done:
        kept = sum((a for reason, a in each.kept.items() if reason != "live"), Amount())
        amounts = (each.removed, each.kept.get("live", Amount()), kept)
        numbers = [number for amount in amounts for number in _amount(amount)]
        log = (each.entries, each.log_from, LOG_WHY[each.log_why])
        table.add_row(*cells(each.table, *numbers, *log))
    console().print(table)
    for each in done:
        for reason, amount in each.kept.items():
            if reason != "live":
                print(f"{each.table}: {_files(amount)} kept: {KEEP_WHY[reason]}")
    removed = sum((each.removed for each in done), Amount())
    print(f"{_files(removed)} {'would be removed' if dry_run else 'removed'}")
    if any(each.entries for each in done if kind_of(each.table) in (BRONZE, SILVER)):
        print("a later rebuild reads the oldest batches of bronze and silver in one step")


def _files(amount: Amount) -> str:
    return f"{plural(amount.files, 'file')} ({size_text(amount.bytes)})"


def _amount(amount: Amount) -> tuple[int, str]:
    return amount.files, size_text(amount.bytes)
