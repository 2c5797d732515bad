"""Carries out a repair. After a crash at any point, the next repair completes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, CONTROL, INPUTS, NUMBERING, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.loads.reopening import reopen_done_loads
from headgate.history.repair.logs import Aside, mend_log, put_log_aside
from headgate.history.repair.plan import CannotRepairError, Plan
from headgate.history.savepoints.resets import (
    BatchIdentity,
    Resets,
    ResetTarget,
    decide_reset,
    reset_intents,
    void_after_loss,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.decisions import DECISIONS, ControlTable, Position, position_of
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.live_files import live_files
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
    aside = Aside(layout.storage, now)
    lost = {log.path for log in plan.logs if log.is_lost}
    for log in plan.logs:
        if not log.is_lost:
            mend_log(layout.storage, log, aside, epoch, now)
    if DECISIONS in lost:
        put_log_aside(layout.storage, DECISIONS, aside)
    control = ControlTable.of(layout.storage, pipeline.name)
    control.shape.create(CONTROL.name)
    found = tables_of(layout, pipeline.name)
    tables = {table.name: table for table in found if table.name not in lost - {DECISIONS}}
    control = ControlTable(tables[DECISIONS])
    for table in tables.values():
        table.fence(epoch)
        failpoint("repair.fenced")
    for path, version in plan.positions.items():
        _place(tables[path], version, now)
    numbering = graph_of(pipeline).of(*NUMBERING)
    position = position_of({n.name: tables[n.path] for n in numbering if n.path in tables})
    control.refresh()
    for source in plan.goes_back:
        reopen_done_loads(control, source, position, now)
    if plan.targets or plan.goes_back or plan.replayed:
        is_unknown = plan.above or DECISIONS in lost
        others = plan.goes_back | plan.replayed
        bronze = {name: tables.get(BRONZE.path(name)) for name in position}
        again = {n: t for n, t in bronze.items() if t and (is_unknown or n in others)}
        _decide(control, plan, again, position, now)
    for path in lost - {DECISIONS}:
        put_log_aside(layout.storage, path, aside)
    Resets(control).carry_out(tables.values(), now)


def _decide(
    control: ControlTable,
    plan: Plan,
    again: Mapping[str, Table],
    position: Position,
    now: datetime,
) -> None:
    """Decide on the resets of a plan. ``again`` are bronze tables, by source, whose next batches
    are others than those that savepoints may have: they stay as they are, but get the new
    generation."""
    decisions = control.refresh()
    targets, intents = dict(plan.targets), reset_intents(decisions)
    # An unfinished reset of bronze is decided again as it was.
    asked = {name_of(path): intents[path] for path in targets if kind_of(path) == BRONZE}
    back_to = {name: intent.back_to.get(name) for name, intent in asked.items()}
    # An input log begins again, so what was decided for its tables has no place any more.
    back_to |= {name_of(path): None for path in targets if kind_of(path) == INPUTS}
    for name, table in again.items():
        if name not in asked:
            state = table.refresh()
            targets[table.name] = ResetTarget(table.version, digest_of(live_files(table.handle)))
            back_to[name] = BatchIdentity(state.generation, state.n)
    decide_reset(
        control,
        targets,
        position,
        now,
        why="repair",
        void=void_after_loss(decisions, back_to),
        back_to=back_to,
        above=plan.above,
    )


def _place(publication: Table, version: int, now: datetime) -> None:
    """Let a publication continue after a version of its table. The events that it has sent stay
    sent."""
    held = publication.refresh()
    payload = replace(PublicationPayload.of(held), version=version)
    publication.commit(held.advanced_to(held.n, now, payload))
