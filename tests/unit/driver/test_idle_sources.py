"""Which sources are idle: those that deliver nothing while others of the same tables do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.declaration.graph import graph_of
from headgate.driver.idle_sources import IdleSources
from headgate.lake.control.driver_reports import Backlog, Outage, SourceReport
from headgate.lake.tables.decisions import NO_DECISIONS
from tests.support.joins import declared

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOG = "raw-visits"
DECLARED = (
    ("right: purchases", "right: seen"),
    ("paid: purchases.amount", "seen: seen.id"),
    ("  visits:\n", "  visits:\n    idle_after: 100 s\n"),
)
NOTHING = SourceReport(Backlog("files"))


class Watched:
    def __init__(self) -> None:
        pipeline = declared(*DECLARED)
        self.decided: list[tuple[str, list[str]]] = []
        self.undecidable: frozenset[str] = frozenset()
        self.runtime = SimpleNamespace(
            pipeline=pipeline,
            graph=graph_of(pipeline),
            undecidable=frozenset(),
            control=SimpleNamespace(refresh=lambda: NO_DECISIONS),
            decide_idle=self._decide,
        )
        self.seconds = 0.0
        self.idle = IdleSources(cast(Any, self.runtime), lambda: self.seconds)
        self.read = {"raw": 0, "visits": 5}

    def _decide(self, log: str, idle: list[str], _: datetime) -> bool:
        self.decided.append((log, idle))
        return True

    def flow(self, seconds: int, report: SourceReport = NOTHING) -> list[tuple[str, list[str]]]:
        """``raw`` delivers a record a second, ``visits`` none."""
        for _ in range(seconds):
            self.seconds += 1
            self.read["raw"] += 1
            self.idle.step(self.read, {"visits": report}, NOON)
        return self.decided


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_source_is_idle_after_its_time(watched: Watched) -> None:
    assert watched.idle.watches
    assert watched.flow(95) == []
    assert watched.flow(10)[0] == (LOG, ["visits"])


def test_one_that_delivers_is_not(watched: Watched) -> None:
    for _ in range(5):
        watched.flow(90)
        watched.read["visits"] += 1
    assert watched.decided == []


@pytest.mark.parametrize(
    "report",
    [
        SourceReport(),
        SourceReport(Backlog("files", 1)),
        SourceReport(Backlog("files"), Outage("away", NOON, NOON)),
    ],
)
def test_one_that_may_have_records_is_not(watched: Watched, report: SourceReport) -> None:
    assert watched.flow(300, report) == []
    assert watched.flow(1) == [(LOG, ["visits"])]


def test_none_is_while_all_are_silent(watched: Watched) -> None:
    watched.flow(50)
    watched.seconds += timedelta(hours=9).total_seconds()
    assert watched.flow(60) == []


def test_nothing_is_decided_while_the_source_is_read_again(watched: Watched) -> None:
    watched.runtime.undecidable = frozenset({"visits"})
    assert watched.flow(300) == []


def test_a_source_without_the_key_is_waited_for() -> None:
    pipeline = declared(*DECLARED[:2])
    runtime = SimpleNamespace(pipeline=pipeline, graph=graph_of(pipeline))
    assert not IdleSources(cast(Any, runtime)).watches
