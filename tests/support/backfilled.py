"""Backfills of a pipeline in this process; the verb runs them in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

from headgate.declaration.contracts.operator import backfilled_tables
from headgate.declaration.model import Pipeline
from headgate.history.backfill.folders import remove_ended_backfills
from headgate.history.backfill.report import TableReport
from headgate.history.backfill.running import (
    BackfillOutcome,
    BackfillScope,
    ask_to_publish,
    compute_backfill,
)
from headgate.history.savepoints.holds import holding
from headgate.lake.control.requests import Request
from headgate.lake.storage.documents import new_id
from tests.support.engine import Engine
from tests.support.readings import NOON

BEGIN = NOON - timedelta(days=3)


def backfill(
    engine: Engine,
    *,
    begin: datetime = BEGIN,
    end: datetime | None = None,
    tables: Sequence[str] = (),
    used: Pipeline | None = None,
    by_end: bool = False,
) -> BackfillOutcome:
    """Compute and compare; nothing is published, and the scratch tables are removed."""
    pipeline = engine.pipeline
    asked = BackfillScope(
        pipeline, used or pipeline, tables or backfilled_tables(pipeline), begin, end, by_end
    )
    now = engine.clock()
    remove_ended_backfills(engine.layout, pipeline)
    with holding(engine.layout, id_ := new_id(now)):
        return compute_backfill(engine.layout, asked, id_, lambda: nullcontext(engine.spark), now)


def publish(engine: Engine, outcome: BackfillOutcome, savepoint: str = "none") -> Request:
    """Request the publication; the next ``take_in_requests`` carries it out."""
    return ask_to_publish(engine.layout, outcome, savepoint, "a test", engine.clock())


def unequal(outcome: BackfillOutcome) -> list[TableReport]:
    return [table for table in outcome.report.tables if table.result == "differs"]
