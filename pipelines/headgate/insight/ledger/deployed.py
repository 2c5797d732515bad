"""The part of a declaration that the ledger can account for."""

from __future__ import annotations

from dataclasses import replace

from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, REJECTED, SILVER
from headgate.declaration.model import GoldTable, Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table


def deployed(layout: Layout, pipeline: Pipeline) -> Pipeline:
    """A declaration without its new sources, silver and gold tables, and without the first suite of
    a silver table, until it is deployed. Publications, of which the ledger has none, are left out,
    too.

    Once a driver has run with the declaration, which is then kept, it is returned as it is: a table
    that is missing later is an error.
    """
    if layout.storage.exists(Layout.declaration(pipeline.digest)):
        return pipeline

    def are_there(*paths: str) -> bool:
        wanted = (path for path in paths if path in pipeline.definitions)
        return all(Table(layout.storage, p, pipeline=pipeline.name).exists for p in wanted)

    sources = {
        name: source
        for name, source in pipeline.sources.items()
        if are_there(BRONZE.path(name), QUARANTINE.path(name))
    }
    silver = {
        name: table if are_there(REJECTED.path(name)) else replace(table, suite=None)
        for name, table in pipeline.silver.items()
        if are_there(SILVER.path(name))
    }
    gold: dict[str, GoldTable] = {}
    for name, table in pipeline.gold.items():  # each after the table that it reads
        is_read = silver.keys() >= {*table.inputs} and (table.reads is None or table.reads in gold)
        if is_read and are_there(GOLD.path(name), LATE.path(name)):
            gold[name] = table
    sources = sources or dict(pipeline.sources)  # it has never run
    gone = {
        kind.path(n) for kind in (BRONZE, QUARANTINE) for n in pipeline.sources.keys() - sources
    }
    gone |= {SILVER.path(n) for n in pipeline.silver if n not in silver}
    gone |= {REJECTED.path(n) for n in pipeline.silver if n not in silver or not silver[n].suite}
    gone |= {kind.path(n) for kind in (GOLD, LATE) for n in pipeline.gold if n not in gold}
    definitions = {p: each for p, each in pipeline.definitions.items() if p not in gone}
    return replace(
        pipeline, sources=sources, silver=silver, gold=gold, publish={}, definitions=definitions
    )
