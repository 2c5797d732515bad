"""A pipeline whose refused records are corrected and replayed, without the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.history.replay import requests
from headgate.history.replay.corrections import (
    CorrectedRecord,
    as_refused,
    corrected_copies,
    patched_records,
)
from headgate.history.replay.outcomes import ReplayOutcome, replay_outcomes
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.history.replay.requests import ReplayDocument
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.declared import source_of
from tests.support.engine import Engine
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject
from tests.support.tables import Row

TABLES = """
silver:
  clean: {from: raw, expectations: clean}
  all: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 0 s
"""
RULES = "expectations:\n  - {id: low, expect: level >= 10}\n"
CORRECTION = "json_merge_patch(value, '{\"level\": 50}')"


def event(name: str, level: object, seconds: int = 0) -> Row:
    at = NOON + timedelta(seconds=seconds)
    return {"id": name, "site": "a", "level": level, "at": at.isoformat()}


class ReplayProject(SuiteProject):
    """Its suite is ``clean``, and its gold table ``per_minute``."""

    def __init__(self, folder: Path, spark: SparkSession, tables: str = TABLES) -> None:
        super().__init__(folder, spark, tables, "clean")
        self.spark = spark
        self.write_rules(RULES)

    def ids(self, table: str) -> list[str]:
        name = "_event_id" if table.startswith("silver/") else "event_id"
        return sorted(row[name] for row in self.read(table))

    def outcomes(
        self, engine: Engine, selection: RefusedSelection, patch: str | None
    ) -> list[ReplayOutcome]:
        records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
        corrected = as_refused(records.rows(selection), lambda each: each.value or b"")
        if patch:
            corrected = patched_records(corrected, patch)
        wanted = corrected_copies(records, corrected, datetime.now(UTC))
        return replay_outcomes(
            self.spark, engine.layout, engine.pipeline, records, corrected, wanted
        )

    def ask(
        self, engine: Engine, patch: str | None, selection: RefusedSelection | None = None
    ) -> int:
        found = self.outcomes(engine, selection or RefusedSelection(), patch)
        good = [outcome.corrected for outcome in found if outcome.passes]
        return ask(engine, good)

    def check(self, engine: Engine) -> None:
        account = balance(engine.layout, engine.pipeline)
        assert account.differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()
        silver = self.ids("silver/clean")
        assert len(set(silver)) == len(silver)
        gold = sum(row["events"] for row in self.read("gold/per_minute"))
        assert gold + len(self.read("late/per_minute")) == len(silver)


def ask(engine: Engine, good: list[CorrectedRecord]) -> int:
    records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
    decisions, now = engine.runtime.control.refresh(), datetime.now(UTC)
    before = len(decisions.replays_of("raw"))
    document = ReplayDocument("raw", decisions.generation, before, len(good), "a test")
    copies = corrected_copies(records, good, now).rows
    requests.request_replay(engine.layout, f"r{before}", document, copies, now)
    return len(good)
