"""How often the parts of a pipeline are read: unchanged and slow ones less often."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from headgate.declaration.model import Pipeline
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import UnreadableSavepoint, create_savepoint, read_savepoint
from headgate.insight.ledger import Ledger, balance
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.parts.ledger import LedgerPart
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms
from headgate.lake.storage.layout import Layout
from tests.unit.insight.ledger.conftest import Lake, bronze, fill
from tests.unit.insight.metrics.conftest import NOW, Clock, Reading, value, values


def test_the_ledger_is_balanced_again_only_if_a_table_has_changed(
    lake: Lake, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Pipeline] = []

    def counted(at: Layout, of: Pipeline) -> Ledger:
        calls.append(of)
        return balance(at, of)

    monkeypatch.setattr("headgate.insight.metrics.parts.ledger.balance", counted)
    fill(lake)
    read(), read(), read()
    assert len(calls) == 1
    lake.commit("bronze/events", 3, [bronze(7)], {"read": 1})
    assert value(read(), "ledger_differences") == 0
    assert len(calls) == 2


def test_savepoints_are_read_once_and_the_newest_counts(
    lake: Lake, read: Reading, place: WatchedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    taken = [
        create_savepoint(place.layout, place.declared, NOW - timedelta(hours=hours))
        for hours in (5, 2)
    ]
    ids: list[str] = []

    def remembered(at: Layout, id_: str) -> Savepoint | UnreadableSavepoint | None:
        ids.append(id_)
        return read_savepoint(at, id_)

    monkeypatch.setattr("headgate.insight.metrics.parts.savepoints.read_savepoint", remembered)
    found = read(), read()
    assert sorted(ids) == sorted(each.id for each in taken)
    assert value(found[1], "savepoints") == 2
    assert value(found[1], "savepoint_age_seconds") == 7200
    assert value(found[1], "savepoint_size_bytes") == taken[0].bytes > 0
    path = f"_headgate/savepoints/{taken[1].id}.json"
    place.layout.storage.write(path, place.layout.storage.read(path)[:40])
    damaged = read()
    assert value(damaged, "savepoints_damaged") == 1
    assert value(damaged, "savepoint_age_seconds") == 18_000


def test_a_slow_part_is_read_less_often(
    lake: Lake, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    began: list[float] = []

    def slow(self: LedgerPart, samples: object, now: datetime) -> None:
        began.append(read.clock.now)
        read.clock.now += 3.0

    monkeypatch.setattr(LedgerPart, "read", slow)
    for _ in range(600):
        read(after=10.0)
    pauses = [later - earlier for earlier, later in pairwise(began)]
    assert pauses[0] < 60, "the first reading says little"
    assert min(pauses[1:]) >= 3.0 / 0.0015


def test_logs_are_read_once_a_second(
    place: WatchedPipeline, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = list[float]()

    def remembered(self: TablesPart, samples: object, now: datetime) -> None:
        began.append(clock.now)

    monkeypatch.setattr(TablesPart, "read", remembered)
    reading = PipelineReading(place.declared, place.layout, Histograms(), monotonic=clock)
    for _ in range(40):
        clock.now += 0.5
        reading.refresh(NOW)
    assert {later - earlier for earlier, later in pairwise(began)} == {1}


def test_parts_that_are_not_due_keep_their_samples(lake: Lake, read: Reading) -> None:
    fill(lake)
    first = read()
    lake.commit("bronze/events", 3, [bronze(7)], {"read": 1})
    soon = read(after=1.5)
    assert value(soon, "read_records_total", "events") == 8
    assert values(soon, "ledger_read_records") == values(first, "ledger_read_records")
