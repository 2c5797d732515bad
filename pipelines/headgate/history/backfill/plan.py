"""What a backfill reads of each table, from the positions of the live tables. Uses no Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headgate.commands import pipeline_command
from headgate.declaration.contracts.operation import Document, is_rejected, operation_named
from headgate.declaration.contracts.operator import begin_of
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, LATE
from headgate.declaration.model import GoldTable, Pipeline
from headgate.history.backfill.chains import BronzeDuplicates, links_of, with_chains, with_links
from headgate.history.backfill.errors import NotBackfilledError, OtherDeclarationError
from headgate.history.backfill.selection import (
    BronzeStep,
    EventTimeRange,
    TimeSpan,
    backfills_into,
    bronze_steps,
    drains_of,
    earlier,
    event_times_read,
    final_end_at,
    require_computable,
)
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import Operation
from headgate.lake.tables.frames import micros
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import ConsistentSnapshot, TablePosition
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class BackfillTarget:
    """The results in ``range`` of a gold table at batch id ``n``, after the operations up to
    ``operation``. ``files`` are those that may have rows of the range, ``read`` are the event times
    of the rows that decide what these are. ``final_through``,
    ``drains`` and ``replays`` decide which rows are late and which results are final
    (``flow.gold.recomputing.RecomputedResults``). ``earlier`` are the ids of the backfills that
    were published into the range before. ``late_files`` are those of the table ``late`` that may
    have pairs of the range that replays have left out; none if there are no such pairs."""

    table: str
    range: EventTimeRange
    n: int
    operation: int
    definition: str
    gold: Table
    files: tuple[DataFile, ...]
    read: tuple[TimeSpan, ...]
    final_through: int | None
    drains: tuple[tuple[int, int], ...]
    replays: tuple[tuple[int, Document, int], ...]
    earlier: tuple[str, ...]
    late: Table
    late_files: tuple[DataFile, ...]


@dataclass(frozen=True)
class BackfillPlan:
    """``steps`` has the steps over bronze of each silver table, by its name, ``replays`` the batch
    ids of the replays of refused records into its bronze."""

    targets: tuple[BackfillTarget, ...]
    steps: Mapping[str, tuple[BronzeStep, ...]]
    replays: Mapping[str, frozenset[int]]

    @property
    def read(self) -> tuple[DataFile, ...]:
        """The files of bronze that are read, each once."""
        found = {f.path: f for each in self.steps.values() for step in each for f in step.files}
        return tuple(found.values())


def plan_backfill(
    at: ConsistentSnapshot, deployed: Pipeline, used: Pipeline, ranges: Mapping[str, EventTimeRange]
) -> BackfillPlan:
    """The plan for a range of each of some gold tables. ``deployed`` is the declaration that the
    tables were made from, ``used`` the one that computes them.

    Raises NotBackfilledError, OtherDeclarationError, DamagedFileError.
    """
    targets = tuple(
        _target(at, deployed, deployed.gold[name], used.gold[name], wanted)
        for name, wanted in ranges.items()
    )
    by_silver: dict[str, list[BackfillTarget]] = {}
    for target in targets:
        by_silver.setdefault(used.gold[target.table].silver, []).append(target)
    return BackfillPlan(
        targets,
        {name: _steps(at, used, name, of) for name, of in by_silver.items()},
        {name: _replays(at, used.silver[name].source) for name in by_silver},
    )


def _replays(at: ConsistentSnapshot, source: str) -> frozenset[int]:
    return frozenset(each.n for each in at.decisions.replays_of(source))


def _target(
    at: ConsistentSnapshot,
    deployed: Pipeline,
    declared: GoldTable,
    used: GoldTable,
    wanted: EventTimeRange,
) -> BackfillTarget:
    path = GOLD.path(declared.name)
    position = position_as_declared(at, deployed, path)
    late = position_as_declared(at, deployed, LATE.path(declared.name))
    state, payload = position.state, GoldPayload.of(position.state)
    read = event_times_read(used, wanted.spans)
    left_out = read if payload.backfills else ()
    source = graph_of(deployed).numbered_by(path).name
    done = _done(at, source, state.operation)
    touching = [each for each in done if _touches(each, deployed, path)]
    require_computable(done, graph_of(deployed), path)
    lateness = micros(declared.allowed_lateness)
    drains = drains_of(payload, touching)
    return BackfillTarget(
        table=declared.name,
        range=wanted,
        n=state.n,
        operation=state.operation,
        definition=state.definition,
        gold=position.table,
        files=overlapping_files(
            *(position.handle, begin_of(declared)[0], earlier(wanted.spans, payload.longest))
        ),
        read=read,
        final_through=payload.final_through(lateness),
        drains=drains,
        replays=tuple(
            (each.n, each.document, final_through)
            for each in touching
            if each.name == "late_replay" and _overlaps(each.document, read)
            if (final_through := final_end_at(each, payload, lateness, declared.time)) is not None
        ),
        earlier=backfills_into(wanted, declared.name, touching),
        late=late.table,
        late_files=overlapping_files(late.handle, "_event_time", left_out),
    )


def position_as_declared(at: ConsistentSnapshot, deployed: Pipeline, path: str) -> TablePosition:
    """The position of a table. Raises OtherDeclarationError if there is no table, or if it was made
    from another declaration than ``deployed``."""
    position = at.tables.get(path)
    if position is None or position.state.definition != deployed.definitions[path]:
        raise OtherDeclarationError(
            f"{path.replace('/', '.')} is not there, or was made from another declaration",
            remedy=f"{pipeline_command('plan')}, then {pipeline_command('upgrade')}",
        )
    return position


def _done(at: ConsistentSnapshot, source: str, operation: int) -> tuple[Operation, ...]:
    """The operations up to the last one that a table of a source has carried out."""
    asked = at.decisions.operations_of(source)
    return tuple(each for each in asked if each.number <= operation)


def _touches(operation: Operation, pipeline: Pipeline, path: str) -> bool:
    touched = operation_named(operation.name).touches(graph_of(pipeline), operation.document)
    return path in touched and not is_rejected(operation.document, path)


def _overlaps(document: Document, spans: Iterable[TimeSpan]) -> bool:
    begin, end = document["from"], document["to"]
    return any(
        (begin is None or begin <= last) and (end is None or end > first) for first, last in spans
    )


def _with_copies(
    bronze: TablePosition, replays: Collection[int], span: TimeSpan, within: timedelta | None
) -> list[TimeSpan]:
    """The event times of the rows that decide which rows of a span are in a table with rules.
    Raises DamagedFileError."""
    storage, find = bronze.table.storage, BronzeDuplicates(bronze.table.storage, bronze.handle).find

    def extended(span: TimeSpan) -> TimeSpan:
        return span if within is None else with_chains(span, micros(within), find)

    links = links_of(storage, bronze.handle, replays) if replays else []
    return with_links(span, links, extended)


def _steps(
    at: ConsistentSnapshot, used: Pipeline, silver: str, targets: Sequence[BackfillTarget]
) -> tuple[BronzeStep, ...]:
    """The steps over bronze that build a silver table. A step ends wherever the batch of a row
    matters: at operations that decide what is late, at replays, and at the batch of each target."""
    table = used.silver[silver]
    position = at.tables[BRONZE.path(table.source)]
    replays = _replays(at, table.source)
    spans = [span for target in targets for span in target.read]
    if not spans:
        return ()
    span = min(first for first, _ in spans), max(last for _, last in spans)
    read = [span]
    if table.suite is not None:
        within = used.sources[table.source].record.one_copy_within
        read = _with_copies(position, replays, span, within)
    files = overlapping_files(position.handle, "event_time", read)
    if not all(file.is_ours for file in files):
        raise NotBackfilledError(
            f"{position.table.name}: another tool has rewritten its files, so the batches of their "
            "rows are unknown",
            remedy=f"go back to a savepoint: {pipeline_command('savepoint list')}",
        )
    last = max(target.n for target in targets)
    ends = {target.n for target in targets}
    ends |= {end for n in replays for end in (n - 1, n) if 0 < end < last}
    for target in targets:
        decided = [n for n, _ in target.drains] + [n for n, _, _ in target.replays]
        ends |= {n for n in decided if 0 < n < last}
    return bronze_steps(files, ends)
