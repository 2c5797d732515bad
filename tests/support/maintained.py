"""Compaction and vacuum of an engine's tables, as far as they can go."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta

from deltalake import DeltaTable

from headgate.history.maintenance.compaction import CompactionLimits
from headgate.history.maintenance.report import Compacted, Vacuumed
from headgate.history.maintenance.steps import compact_tables, vacuum_tables
from tests.support.engine import Engine


def compacted(engine: Engine) -> dict[str, Compacted]:
    tables, limits = engine.runtime.owned(), CompactionLimits(least=2)
    steps = compact_tables(
        engine.layout, engine.pipeline, tables, nullcontext, engine.clock, limits
    )
    return {step.table: step for step in steps if step is not None}


def vacuumed(engine: Engine) -> dict[str, Vacuumed]:
    engine.now += timedelta(hours=1)  # later than the files' times
    done = vacuum_tables(
        engine.layout,
        engine.pipeline,
        engine.runtime.owned(),
        timedelta(),
        nullcontext,
        engine.clock,
    )
    return {each.table: each for each in done if each is not None}


def trimmed(engine: Engine) -> None:
    """Delete everything that can be deleted. A log is only trimmed to a checkpoint that another one
    follows, so a new checkpoint is created first."""
    compacted(engine)
    vacuumed(engine)
    for table in engine.runtime.owned():
        table.fence(engine.epoch)
        DeltaTable(table.storage.uri()).create_checkpoint()
    vacuumed(engine)
