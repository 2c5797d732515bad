"""Carries out a repair. After a crash at any point, the next repair completes it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import RECORDS, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.loads.reopening import reopen_done_loads
from headgate.history.repair.logs import Aside, mend_log, put_log_aside
from headgate.history.repair.plan import CannotRepairError, Plan
from headgate.history.savepoints.resets import Resets, intend_reset
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import list_log, read_commit
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table


def highest_epoch(layout: Layout, pipeline: str) -> int:
    """The highest epoch in the readable entries of all tables. Reads all logs."""
    epochs = [0]
    for table in tables_of(layout, pipeline):
        for version in list_log(table.storage).entries:
            with suppress(HeadgateError):
                commit = read_commit(table.storage, version)
                epochs.append(commit.state.epoch if commit else 0)
    return max(epochs)


def require_format(layout: Layout, pipeline: str) -> None:
    """Raises FormatError if another version of Headgate wrote the tables. To a repair, its leases
    would look damaged."""
    for table in tables_of(layout, pipeline):
        for version in reversed(list_log(table.storage).entries):
            with suppress(LogGapError):
                if read_commit(table.storage, version) is not None:
                    break


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
        raise CannotRepairError(plan.refusal, remedy=plan.way_back)
    put_documents_aside(layout, (document.path for document in plan.documents), now)
    aside, head = Aside(layout.storage, now), graph_of(pipeline).head
    if plan.goes_back:
        reopen_done_loads(layout, head.name)
    lost = {log.path for log in plan.logs if log.is_lost}
    for log in plan.logs:
        if not log.is_lost:
            mend_log(layout.storage, log, aside, epoch, now)
    found = tables_of(layout, pipeline.name)
    tables = {table.name: table for table in found if table.name not in lost}
    for table in tables.values():
        table.fence(epoch)
        failpoint("repair.fenced")
    for path, version in plan.positions.items():
        _place(tables[path], version, now)
    bronze = tables.get(head.path)
    if bronze is not None and plan.targets:
        intend_reset(bronze, plan.targets, now, why="repair", above=plan.above)
    for path in lost:
        put_log_aside(layout.storage, path, aside)
    if bronze is not None:
        built = (table for path, table in tables.items() if kind_of(path) in RECORDS)
        Resets(bronze).carry_out(built, now)


def _place(publication: Table, version: int, now: datetime) -> None:
    """Let a publication continue after a version of its table. The events that it has sent stay
    sent."""
    held = publication.refresh()
    payload = replace(PublicationPayload.of(held), version=version)
    publication.commit(held.advanced_to(held.n, now, payload))
