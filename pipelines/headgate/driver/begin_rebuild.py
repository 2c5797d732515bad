"""Begins rebuilds of tables, because the declaration changed or on request."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from headgate.declaration.graph.graph import graph_of
from headgate.declaration.model import Pipeline
from headgate.driver.runtime import PipelineRuntime
from headgate.failpoints import failpoint
from headgate.history.loads.reopening import reopen
from headgate.history.savepoints import rebuilds
from headgate.history.savepoints.rebuilds import FOLDER, Rebuild
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError


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
    bronze, pipeline = runtime.resets.bronze, runtime.pipeline
    generation = bronze.refresh().generation
    before = rebuilds.begun(layout, generation)
    under_way = rebuilds.continued(layout, pipeline, generation)
    if set(runtime.layers) == set(LAYERS):
        wanted = wanted_tables(pipeline, before, tables)
        if not under_way or not wanted <= under_way.tables.keys():
            under_way = _recorded(runtime, layout, wanted, epoch, now, why)
    if "bronze" in runtime.layers and not _is_open(runtime):
        rebuilds.remove_void(layout, bronze, under_way)
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
    generation = runtime.resets.bronze.refresh().generation
    definitions = {path: runtime.pipeline.definitions[path] for path in sorted(wanted)}
    rebuild = Rebuild(f"{FOLDER}/{epoch}", generation + 1, definitions, why, now)
    # Reopen loads before the rebuild is recorded: after a crash in between, a load that bronze has
    # completely becomes ``done`` again.
    reopen(layout, runtime.pipeline.name, definitions)
    rebuilds.record(layout, rebuild)
    failpoint("rebuild.recorded")
    return rebuild


def _is_open(runtime: PipelineRuntime) -> bool:
    """Whether a table of another job has not taken over its published rebuild yet."""
    return any(map(runtime.resets.awaits, map(runtime.table, runtime.pipeline.definitions)))
