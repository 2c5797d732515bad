"""Rebuilding tables: from a changed declaration, or because somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.graph.graph import graph_of
from headgate.jobs.medallion import Medallion
from headgate.savepoints import rebuilds
from headgate.savepoints.rebuilds import FOLDER, Rebuild
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.tables.errors import LogGapError


def rebuild(
    medallion: Medallion, layout: Layout, tables: Iterable[str], epoch: int, now: datetime, why: str
) -> None:
    """Build some tables, and all that is built on them, beside the living ones, as they are
    declared now; or go on with what was begun. Where bronze is among them, everything is read
    again from the source.

    ``tables`` are paths of bronze, silver or gold tables. To be called with the tables of the job
    open and fenced.
    """
    bronze, pipeline = medallion.resets.bronze, medallion.pipeline
    generation = bronze.refresh().generation
    before = rebuilds.begun(layout, generation)
    under_way = rebuilds.continued(layout, pipeline, generation)
    if set(medallion.layers) == set(LAYERS):
        asked = {*tables, *(before.still_declared(pipeline) if before else ())}
        wanted = graph_of(pipeline).rebuilt_with(asked)
        if not under_way or not wanted <= under_way.tables.keys():
            under_way = _recorded(medallion, layout, wanted, epoch, now, why)
    if "bronze" in medallion.layers and not _is_open(medallion):
        rebuilds.remove_void(layout, bronze, under_way)
    if under_way is None:
        return
    try:
        medallion.begin(under_way, epoch)
    except LogGapError:
        # Nothing rests on a rebuild: one that is damaged is begun again.
        if before is None or under_way.folder != before.folder:
            raise
        again = _recorded(medallion, layout, under_way.tables.keys(), epoch, now, under_way.why)
        assert again is not None
        medallion.begin(again, epoch)


def _recorded(
    medallion: Medallion,
    layout: Layout,
    wanted: Collection[str],
    epoch: int,
    now: datetime,
    why: str,
) -> Rebuild | None:
    """A new rebuild, under way from here on; None of nothing. Raises FencedError."""
    if not wanted:
        return None
    generation = medallion.resets.bronze.refresh().generation
    definitions = {path: medallion.pipeline.definitions[path] for path in sorted(wanted)}
    rebuild = Rebuild(f"{FOLDER}/{epoch}", generation + 1, definitions, why, now)
    rebuilds.record(layout, rebuild)
    failpoint("rebuild.recorded")
    return rebuild


def _is_open(medallion: Medallion) -> bool:
    """Whether a table of another job has still to take its rebuild over."""
    return any(map(medallion.resets.awaits, map(medallion.table, medallion.pipeline.definitions)))
