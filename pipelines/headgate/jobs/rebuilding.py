"""Rebuilding tables: from a changed declaration, or because somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.jobs.medallion import Medallion
from headgate.savepoints import rebuilds
from headgate.savepoints.rebuilds import FOLDER, Rebuild
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout


def rebuild(
    medallion: Medallion, layout: Layout, tables: Iterable[str], epoch: int, now: datetime, why: str
) -> None:
    """Build some tables, and all that is built on them, beside the living ones, as they are
    declared now; or go on with what was begun. Where bronze is among them, everything is read
    again from the source.

    ``tables`` are paths of bronze, silver or gold tables. To be called with the tables of the job
    open and fenced.
    """
    generation = medallion.resets.bronze.refresh().generation
    pipeline, under_way = (
        medallion.pipeline,
        rebuilds.continued(layout, medallion.pipeline, generation),
    )
    wanted = with_those_below(pipeline, tables)
    if wanted and (under_way is None or not wanted <= under_way.tables.keys()):
        wanted |= under_way.tables.keys() if under_way else set()
        definitions = {path: pipeline.definitions[path] for path in sorted(wanted)}
        under_way = Rebuild(f"{FOLDER}/{epoch}", generation + 1, definitions, why, now)
        rebuilds.record(layout, under_way)
        failpoint("rebuild.recorded")
    if "bronze" in medallion.layers and not _is_open(medallion):
        rebuilds.remove_void(layout, under_way)
    if under_way is not None:
        medallion.begin(under_way, epoch)


def _is_open(medallion: Medallion) -> bool:
    """Whether a table of another job has still to take its rebuild over."""
    return any(
        medallion.resets.awaits(medallion.table(path)) for path in medallion.pipeline.definitions
    )


def with_those_below(pipeline: Pipeline, tables: Iterable[str]) -> frozenset[str]:
    """Tables with all that is built on them: a late table goes with its gold table, quarantine
    with bronze."""
    wanted = set(tables)
    for source in pipeline.sources:
        if Layout.bronze(source) in wanted:
            wanted.add(Layout.quarantine(source))
            wanted |= {Layout.silver(table.name) for table in pipeline.silver_of(source)}
    for name in pipeline.silver:
        if Layout.silver(name) in wanted:
            wanted |= {Layout.gold(table.name) for table in pipeline.gold_of(name)}
    return frozenset(wanted | {Layout.late(n) for n in pipeline.gold if Layout.gold(n) in wanted})
