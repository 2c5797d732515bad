"""Building tables anew: from a changed declaration, or because somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from deltalake import Schema

from headgate.jobs.medallion import Medallion
from headgate.savepoints.resets import Intent, Target, intend
from headgate.savepoints.undeclared import left_behind, undeclared
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout


def rebuild(
    medallion: Medallion, layout: Layout, tables: Iterable[str], now: datetime, why: str
) -> Intent | None:
    """Empty some tables and all that is built on them, as they are declared now; they catch up
    from the table above. Where bronze is among them, everything is read again from the source.

    ``tables`` are paths of bronze, silver or gold tables. To be called with every table open and
    fenced. Returns None where there is nothing to do.
    """
    wanted = with_those_below(medallion.pipeline, tables)
    if not wanted:
        return None
    shapes = {shape.table.name: shape for shape in medallion.shapes()}
    targets = {
        path: Target(
            definition=medallion.pipeline.definitions[path],
            schema=Schema.from_arrow(shapes[path].schema).to_json(),
        )
        for path in wanted
    }
    bronze = medallion.bronze.table
    reread = targets.pop(bronze.name, None)
    undeclared_there = undeclared(layout, medallion.pipeline)
    kept = left_behind((table.name for table in undeclared_there), wanted)
    left = [table for table in undeclared_there if table.name in kept]
    for table in left:
        table.fence(bronze.epoch)
    intent = intend(bronze, targets | kept, now, why=why, reread=reread)
    medallion.resets.carry_out((*medallion.owned(), *left), now)
    return intent


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
