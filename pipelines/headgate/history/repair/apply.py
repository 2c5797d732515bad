"""Carries out a repair. After a crash at any point, the next repair completes it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import RECORDS, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.loads.reopening import reopen_done_loads, reopen_loads
from headgate.history.repair.files_log import fill
from headgate.history.repair.findings import CannotRepairError
from headgate.history.repair.plan import Plan
from headgate.history.repair.surgery import Aside, put_log_aside, repair_log
from headgate.history.savepoints.resets import Resets, intend
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table

WHY = "repair"


def highest_epoch(layout: Layout, pipeline: str) -> int:
    """The highest epoch in the readable entries of all tables. Reads all logs."""
    epochs = [0]
    for table in tables_of(layout, pipeline):
        for version in log_folder(table.storage).entries:
            with suppress(HeadgateError):
                commit = read_commit(table.storage, version)
                epochs.append(commit.state.epoch if commit else 0)
    return max(epochs)


def put_documents_aside(layout: Layout, paths: Iterable[str], now: datetime) -> None:
    aside = Aside(layout.storage, now)
    for path in paths:
        aside.put(path)
        failpoint("repair.document_aside")


def apply(layout: Layout, pipeline: Pipeline, plan: Plan, epoch: int, now: datetime) -> None:
    """Carry out a plan. The caller holds a lease of all layers, with this epoch.

    Raises CannotRepairError, with nothing changed, if the plan has a refusal; FencedError.
    """
    if plan.refusal is not None:
        raise CannotRepairError(
            plan.refusal,
            remedy=f"put {layout.storage.uri()} back from a backup, as a whole, or read everything "
            f"again into another folder: {pipeline_command('run', '--root', NEW_ROOT)}",
        )
    put_documents_aside(layout, (document.path for document in plan.documents), now)
    aside, bronze = Aside(layout.storage, now), graph_of(pipeline).head
    if plan.reread or any(log.path == bronze.path for log in plan.logs):
        reopen_done_loads(layout, bronze.name)
    for log in plan.logs:
        if log.is_lost:
            put_log_aside(layout.storage, log.path, aside)
        else:
            repair_log(layout.storage, log, aside, epoch, now)
    tables = {table.name: table for table in tables_of(layout, pipeline.name)}
    for table in tables.values():
        table.fence(epoch)
        failpoint("repair.fenced")
    if plan.filling is not None:
        fill(layout, pipeline, plan.filling, epoch, now)
    if plan.reread:
        reopen_loads(layout, pipeline.name, [bronze.path])
    _reset(tables, pipeline, plan, now)
    for path, version in plan.positions.items():
        _place(tables[path], version, now)


def _reset(tables: dict[str, Table], pipeline: Pipeline, plan: Plan, now: datetime) -> None:
    bronze = tables.get(graph_of(pipeline).head.path)
    if bronze is None:
        return
    if plan.resets:
        intend(bronze, plan.targets, now, why=WHY, reread=plan.reread, above=plan.above)
    built = (table for path, table in tables.items() if kind_of(path) in RECORDS)
    Resets(bronze).carry_out(built, now)


def _place(publication: Table, version: int, now: datetime) -> None:
    """Let a publication continue after a version of its table. The events that it has sent stay
    sent."""
    held = publication.refresh()
    payload = replace(PublicationPayload.of(held), version=version)
    publication.commit(held.advanced_to(held.n, now, payload))
