"""Opens the tables of a job, before any batch runs, and begins rebuilds of tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline
from headgate.driver.refusing import require_definitions, require_same_sources
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.task import NO_REBUILD, RebuildRequest
from headgate.failpoints import failpoint
from headgate.flow.operations.carrying_out import amend_extended
from headgate.history.loads.reopening import reopen_loads
from headgate.history.savepoints import rebuilds
from headgate.history.savepoints.declarations import keep_declaration
from headgate.history.savepoints.deployment import schemas_to_extend
from headgate.history.savepoints.errors import ResetOpenError
from headgate.history.savepoints.rebuilds import FOLDER, Rebuild, begun_rebuild
from headgate.history.savepoints.resets import undeclared_tables
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.agreement import States, require_agreement, states_of
from headgate.lake.tables.damage import require_present
from headgate.lake.tables.decisions import DECISIONS, Position
from headgate.lake.tables.engine import engine
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.extending import extend
from headgate.lake.tables.table import Table


def open_tables(
    runtime: PipelineRuntime, layout: Layout, epoch: int, now: datetime, request: RebuildRequest
) -> None:
    """Fence the tables, finish what a crash interrupted, and check them against the declaration.
    With several sources, damage holds its source (``DamagedTables``), unless the tables are to
    change: a reset of some is not finished, or a rebuild of some is asked for.

    Raises DefinitionChangedError (also if the source had another name), FencedError, LogGapError,
    DamagedFileError.
    """
    pipeline, damaged = runtime.pipeline, runtime.damaged
    states = states_of(layout, pipeline, damaged.add)
    require_same_sources(pipeline, (*states, *filter(damaged.__contains__, pipeline.definitions)))

    def awaits(path: str) -> bool:
        return runtime.resets.awaits_at(path, states[path][1].generation)

    require_agreement(pipeline, states, awaits, damaged.add)
    if request != NO_REBUILD or any(map(awaits, states)):
        damaged.require_none()
    _require_declared(runtime, states, awaits, request)
    _save_way_back(runtime, layout, states, now)
    runtime.open(epoch, now)
    _finish_undeclared(runtime, layout, epoch, now)
    for table in runtime.owned():
        with damaged.found_in(table.name):
            require_present(table)
    if request != NO_REBUILD:
        damaged.require_none()
    runtime.hold_damaged(now)
    if request.changed and set(runtime.layers) == set(LAYERS):
        _extend(runtime, layout, now)
    changed = {table.name for table in runtime.changed()} if request.changed else set()
    why = "the declaration changed" if changed else "asked for by hand"
    begin_rebuild(runtime, layout, changed | set(request.tables), epoch, now, why)
    runtime.require_declared()
    keep_declaration(layout, runtime.pipeline)


def _require_declared(
    runtime: PipelineRuntime,
    states: States,
    awaits: Callable[[str], bool],
    request: RebuildRequest,
) -> None:
    """Raises DefinitionChangedError before any table is created or any rebuild is recorded. A reset
    that is open is completed first; the tables are checked after it."""
    if request.changed or any(map(awaits, states)):
        return
    decisions, rebuilt = runtime.control.refresh(), frozenset[str]()
    if set(runtime.layers) == set(LAYERS):
        rebuilt = wanted_tables(runtime.pipeline, begun_rebuild(decisions), request.tables)
    require_definitions(runtime.pipeline, states, decisions, awaits, rebuilt)


def _extend(runtime: PipelineRuntime, layout: Layout, now: datetime) -> None:
    """Extend the tables for which the declaration only adds fields inside of columns. After a
    crash, the next upgrade continues with the tables that lack the fields."""
    tables = {table.name: table for table in runtime.owned()}
    schemas, declared = (
        schemas_to_extend(layout, runtime.pipeline, tables),
        runtime.pipeline.definitions,
    )
    made_as = {path: (tables[path].state.definition, declared[path]) for path in schemas}
    if made_as:
        runtime.decide(lambda position: amend_extended(runtime.control, made_as, position, now))
    for path, schema in schemas.items():
        extend(tables[path], schema, declared[path], now)
        failpoint("extend.table_done")


def _finish_undeclared(runtime: PipelineRuntime, layout: Layout, epoch: int, now: datetime) -> None:
    """Fence and reset tables that no job owns. Otherwise an older driver could go on with a source
    that was removed since, and the reset would never be complete."""
    if "bronze" not in runtime.layers:
        return
    pipeline, storage = runtime.pipeline, layout.storage
    left = [name for name in storage.folders(BRONZE.folder) if name not in pipeline.sources]
    bronze = (Table(storage, BRONZE.path(name), pipeline=pipeline.name) for name in left)
    waiting = [t for t in undeclared_tables(layout, pipeline) if runtime.resets.awaits(t)]
    for table in (*(t for t in bronze if t.exists), *waiting):
        table.fence(epoch)
    runtime.resets.carry_out(waiting, now)


def _save_way_back(runtime: PipelineRuntime, layout: Layout, states: States, now: datetime) -> None:
    """Take a savepoint before other versions of packages write these tables. Skipped
    while a reset is open."""
    if "bronze" in runtime.layers and DECISIONS in states:
        wrote = states[DECISIONS][1].engine
        if wrote not in ("", engine()):
            with suppress(ResetOpenError):
                create_savepoint(layout, runtime.pipeline, now, f"written by {wrote}")


def begin_rebuild(
    runtime: PipelineRuntime,
    layout: Layout,
    tables: Iterable[str],
    epoch: int,
    now: datetime,
    why: str,
) -> None:
    """Begin to rebuild some tables and their downstream tables from the current declaration, or
    continue the rebuild that was begun. If bronze is among them, the whole source is read again.

    ``tables`` are paths of bronze, silver or gold tables. The tables of the job must be open and
    fenced.
    """
    pipeline, decisions = runtime.pipeline, runtime.control.refresh()
    before = rebuilds.begun_rebuild(decisions)
    under_way = rebuilds.continued_rebuild(decisions, pipeline)
    if set(runtime.layers) == set(LAYERS):
        wanted = wanted_tables(pipeline, before, tables)
        if not under_way or not wanted <= under_way.tables.keys():
            under_way = _recorded(runtime, layout, wanted, epoch, now, why)
    if "bronze" in runtime.layers and not _is_open(runtime):
        rebuilds.remove_void_rebuilds(layout, runtime.control.table, under_way)
    if under_way is None:
        return
    try:
        runtime.begin(under_way, epoch)
    except LogGapError:
        # No table depends on an unpublished rebuild: a damaged one is begun again.
        if before is None or under_way.folder != before.folder:
            raise
        again = _recorded(runtime, layout, under_way.tables.keys(), epoch, now, under_way.why)
        assert again is not None
        runtime.begin(again, epoch)


def wanted_tables(
    pipeline: Pipeline, before: Rebuild | None, tables: Iterable[str]
) -> frozenset[str]:
    """The tables that ``begin_rebuild`` rebuilds in a job of all layers: the given ones, those of
    the rebuild ``before`` that are declared as then, and all tables downstream of them."""
    begun = before.still_declared(pipeline) if before else ()
    return graph_of(pipeline).rebuilt_with({*tables, *begun})


def _recorded(
    runtime: PipelineRuntime,
    layout: Layout,
    wanted: Collection[str],
    epoch: int,
    now: datetime,
    why: str,
) -> Rebuild | None:
    """Record a new rebuild of the ``wanted`` tables; None if there are none. Raises FencedError."""
    if not wanted:
        return None
    generation = runtime.control.refresh().generation
    definitions = {path: runtime.pipeline.definitions[path] for path in sorted(wanted)}
    rebuild = Rebuild(f"{FOLDER}/{epoch}", generation + 1, definitions, why)
    # Reopen loads before the rebuild is recorded: after a crash in between, a load that bronze has
    # completely becomes ``done`` again.
    name = runtime.pipeline.name

    def decide(position: Position) -> None:
        reopen_loads(layout, runtime.control, name, definitions, position, now)
        rebuilds.decide_rebuild(runtime.control, rebuild, position, now)

    runtime.decide(decide)
    return rebuild


def _is_open(runtime: PipelineRuntime) -> bool:
    """Whether a table of another job may not have taken over its published rebuild yet."""
    if runtime.damaged:
        return True
    return any(map(runtime.resets.awaits, map(runtime.table, runtime.pipeline.definitions)))
