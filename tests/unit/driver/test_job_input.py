"""Several sources have the same batch ids, even after a failure between their commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headgate.driver.job_input import PipelineSources
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Bronze:
    """Stands in for a stage and its table: has the records of each batch."""

    batches: list[Sequence[int]] = field(default_factory=list)

    @property
    def table(self) -> Any:
        return self

    def refresh(self) -> State:
        return State(BronzePayload(), n=len(self.batches))

    def skip(self, now: datetime) -> State:
        self.batches.append(())
        return self.refresh()


class Counting:
    """A source of numbers, two in a batch. With ``fails`` it fails before a commit."""

    every = 1.0

    def __init__(self, bronze: Bronze, end: int = 0) -> None:
        self.bronze, self.end, self.fails = bronze, end, False
        self.took: list[timedelta] = []

    @property
    def next(self) -> int:
        return sum(map(len, self.bronze.batches))

    def poll(self, *, final: bool) -> None:
        return

    def pending(self) -> int:
        return -(-(self.end - self.next) // 2)

    def backlog(self) -> Backlog:
        return Backlog("records", self.end - self.next)

    def has_ingested_all(self) -> bool:
        return self.next == self.end

    def ingest(self) -> bool:
        if self.fails:
            raise InterruptedError
        if not self.pending():
            return False
        self.bronze.batches.append(range(self.next, min(self.end, self.next + 2)))
        return True

    def batch_took(self, took: timedelta) -> None:
        self.took.append(took)


class Two:
    def __init__(self) -> None:
        self.bronze = {"a": Bronze(), "b": Bronze()}
        self.sources = {name: Counting(bronze) for name, bronze in self.bronze.items()}
        self.all = PipelineSources(cast(Any, self.sources), self.bronze, lambda: NOON)

    @property
    def batches(self) -> list[list[list[int]]]:
        return [[list(batch) for batch in bronze.batches] for bronze in self.bronze.values()]


def test_each_has_every_batch_id(two: Two) -> None:
    two.sources["a"].end, two.sources["b"].end = 5, 1
    assert two.all.pending() == 3
    for _ in range(3):
        assert two.all.ingest()
    assert two.batches == [[[0, 1], [2, 3], [4]], [[0], [], []]]
    assert two.all.has_ingested_all()


def test_there_is_no_batch_without_input(two: Two) -> None:
    assert not two.all.ingest()
    assert two.batches == [[], []]


@pytest.mark.parametrize("arrives", [0, 3])
def test_a_batch_that_broke_off_is_completed_before_another(two: Two, arrives: int) -> None:
    two.sources["a"].end, two.sources["b"].end = 4, 1
    two.sources["b"].fails = True
    with pytest.raises(InterruptedError):
        two.all.ingest()
    assert two.batches == [[[0, 1]], []]
    two.sources["b"].fails, two.sources["b"].end = False, arrives
    assert two.all.ingest()
    assert two.batches == [[[0, 1]], [[0, 1] if arrives else []]]
    assert two.all.ingest()
    assert two.batches[0] == [[0, 1], [2, 3]]
    assert {len(batches) for batches in two.batches} == {2}


def test_one_source_is_as_it_is_alone() -> None:
    bronze = Bronze()
    source = Counting(bronze, end=3)
    alone = PipelineSources(cast(Any, {"a": source}), {"a": bronze}, lambda: NOON)
    assert alone.backlog() == Backlog("records", 3)
    alone.batch_took(timedelta(seconds=1))
    assert source.took == [timedelta(seconds=1)]
    assert [alone.ingest(), alone.ingest(), alone.ingest()] == [True, True, False]


@pytest.fixture
def two() -> Two:
    return Two()
