"""Rebuilding tables: from a changed declaration, or because somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.graph.graph import graph_of
from headgate.jobs.runtime import PipelineRuntime
from headgate.savepoints import rebuilds
from headgate.savepoints.rebuilds import FOLDER, Rebuild
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.tables.errors import LogGapError


def rebuild(
    runtime: PipelineRuntime,
    layout: Layout,
    tables: Iterable[str],
    epoch: int,
    now: datetime,
    why: str,
) -> None:
    """Build some tables, and all that is built on them, beside the living ones, as they are
    declared now; or go on with what was begun. Where bronze is among them, everything is read
    again from the source.

    ``tables`` are paths of bronze, silver or gold tables. To be called with the tables of the job
    open and fenced.
    """
    bronze, pipeline = runtime.resets.bronze, runtime.pipeline
    generation = bronze.refresh().generation
    before = rebuilds.begun(layout, generation)
    under_way = rebuilds.continued(layout, pipeline, generation)
    if set(runtime.layers) == set(LAYERS):
        asked = {*tables, *(before.still_declared(pipeline) if before else ())}
        wanted = graph_of(pipeline).rebuilt_with(asked)
        if not under_way or not wanted <= under_way.tables.keys():
            under_way = _recorded(runtime, layout, wanted, epoch, now, why)
    if "bronze" in runtime.layers and not _is_open(runtime):
        rebuilds.remove_void(layout, bronze, under_way)
    if under_way is None:
        return
    try:
        runtime.begin(under_way, epoch)
    except LogGapError:
        # Nothing rests on a rebuild: one that is damaged is begun again.
        if before is None or under_way.folder != before.folder:
            raise
        again = _recorded(runtime, layout, under_way.tables.keys(), epoch, now, under_way.why)
        assert again is not None
        runtime.begin(again, epoch)


def _recorded(
    runtime: PipelineRuntime,
    layout: Layout,
    wanted: Collection[str],
    epoch: int,
    now: datetime,
    why: str,
) -> Rebuild | None:
    """A new rebuild, under way from here on; None of nothing. Raises FencedError."""
    if not wanted:
        return None
    generation = runtime.resets.bronze.refresh().generation
    definitions = {path: runtime.pipeline.definitions[path] for path in sorted(wanted)}
    rebuild = Rebuild(f"{FOLDER}/{epoch}", generation + 1, definitions, why, now)
    rebuilds.record(layout, rebuild)
    failpoint("rebuild.recorded")
    return rebuild


def _is_open(runtime: PipelineRuntime) -> bool:
    """Whether a table of another job has still to take its rebuild over."""
    return any(map(runtime.resets.awaits, map(runtime.table, runtime.pipeline.definitions)))
