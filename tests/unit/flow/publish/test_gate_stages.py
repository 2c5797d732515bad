"""Publications of gate events, to a log and to a mirror, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.load import load
from headgate.declaration.model import Publication
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates.validations import Validation, ValidationLog
from headgate.flow.publish import mirror_calls
from headgate.flow.publish.gate_stages import GateEventStage, GateMirrorStage
from headgate.flow.publish.publication import PublishedPosition
from headgate.flow.publish.sinks.writers import (
    KEY,
    Mirror,
    MirrorVersion,
    Outgoing,
    SinkRefusalError,
    VersionDifference,
    Writer,
)
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake

NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)
SUITE = Suite("s", (Rule("a", "e", {"column": "c"}, action="hold"),))
MET = RuleResult("a", "critical", "hold", met=True, observed="3")
BROKEN = replace(MET, met=False)
SPARK: Any = SimpleNamespace(createDataFrame=lambda table: table)


@dataclass
class Gate:
    """The gate of a gold table, whose events are published as ``to``."""

    lake: Lake
    n: int = 0

    def validate(self, *results: RuleResult) -> None:
        """Validate the next version of gold."""
        self.n += 1
        at = NOW + timedelta(seconds=self.n)
        found = Validation("per_minute", self.n, self.n, at, SUITE, results)
        ValidationLog(self.lake.layout, "per_minute").record(found)

    def commit(self) -> None:
        """A commit of gold that no validation belongs to."""
        n = self.lake.table("gold/per_minute").refresh().n
        self.lake.commit("gold/per_minute", n, [{"window_start": NOON, "events": 1}], {})

    @property
    def position(self) -> PublishedPosition:
        found = PublishedPosition(self.lake.layout.storage, self.lake.pipeline, self.publication)
        found.create()
        return found

    @property
    def publication(self) -> Publication:
        return self.lake.pipeline.publish["to"]


@dataclass
class Log(Writer):
    """``sent`` has the events of each call. ``is_done`` is what ``send`` returns."""

    sent: list[list[str]] = field(default_factory=list)
    is_done: bool = True

    def send(self, outgoing: Outgoing) -> bool:
        self.sent.append(cast(Any, outgoing.rows).column("event").to_pylist())
        assert cast(Any, outgoing.messages).num_rows == len(self.sent[-1])
        return self.is_done

    def failure(self, error: Exception) -> str | None:
        return "not taken"


@dataclass
class Table(Mirror):
    """A mirror in memory: ``rows`` has the events by their keys."""

    rows: dict[bytes, str] = field(default_factory=dict)
    version: MirrorVersion | None = None
    asked: int = 0

    def held(self) -> MirrorVersion | None:
        self.asked += 1
        return self.version

    def apply(self, difference: VersionDifference) -> None:
        if difference.after != self.version:
            raise SinkRefusalError("another driver has written")
        for table in difference.rows:
            for row in table.to_pylist():
                self.rows[row[KEY]] = row["event"]
        self.version = difference.upto

    def failure(self, error: Exception) -> str | None:
        return "not taken"

    def reset(self) -> None:
        self.rows, self.version = {}, None

    @property
    def events(self) -> list[str]:
        return list(self.rows.values())


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    published = {"to": Publication("to", "gate", "per_minute", None, "postgres", None)}
    lake = Lake(tmp_path / "lake", load(file))
    lake.pipeline = replace(lake.pipeline, publish=published)
    return Gate(lake)


Start = Callable[[Table], GateMirrorStage]


@pytest.fixture
def start(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins a driver with a mirror."""
    monkeypatch.setattr(mirror_calls, "BRIEFLY", 60.0)
    with ExitStack() as stack:

        def started(table: Table) -> GateMirrorStage:
            stage = GateMirrorStage(gate.lake.layout.storage, gate.position, table)
            return stack.enter_context(closing(stage))

        yield started


def log_stage(gate: Gate, log: Log) -> GateEventStage:
    return GateEventStage(SPARK, gate.lake.layout.storage, gate.position, log)


def test_a_log_gets_each_event_once(gate: Gate) -> None:
    log = Log()
    stage = log_stage(gate, log)
    gate.validate(MET)
    assert stage.catch_up(NOW)
    gate.validate(BROKEN)
    gate.validate(BROKEN)
    assert stage.catch_up(NOW)
    assert stage.catch_up(NOW)
    gate.validate(MET)
    assert log_stage(gate, log).catch_up(NOW)
    assert stage.catch_up(NOW)
    assert log.sent == [["held"], ["passed"]]


def test_a_log_that_sends_in_the_background_gets_the_same_events_again(gate: Gate) -> None:
    log = Log(is_done=False)
    stage = log_stage(gate, log)
    gate.validate(BROKEN)
    assert not stage.catch_up(NOW)
    gate.validate(MET)
    assert not stage.catch_up(NOW)
    log.is_done = True
    assert not stage.catch_up(NOW), "the second event exists since the call began"
    assert stage.catch_up(NOW)
    assert log.sent == [["held"], ["held"], ["held"], ["passed"]]


def test_a_mirror_gets_the_events_and_is_asked_once(gate: Gate, start: Start) -> None:
    table = Table()
    stage = start(table)
    gate.validate(BROKEN)
    gate.validate(MET)
    assert stage.catch_up(NOW)
    gate.validate(BROKEN)
    assert stage.catch_up(NOW)
    assert stage.catch_up(NOW)
    assert table.events == ["held", "passed", "held"]
    assert table.asked == 1
    assert table.version is not None
    assert gate.position.event == table.version.files


def test_a_reset_mirror_gets_all_events_again(gate: Gate, start: Start) -> None:
    """The position in the lake still has the last event."""
    table = Table()
    gate.validate(BROKEN)
    gate.validate(MET)
    assert start(table).catch_up(NOW)
    table.reset()
    assert start(table).catch_up(NOW)
    assert table.events == ["held", "passed"]


def test_a_mirror_that_is_reset_while_the_driver_runs_gets_all_events_again(
    gate: Gate, start: Start
) -> None:
    table = Table()
    stage = start(table)
    gate.validate(BROKEN)
    assert stage.catch_up(NOW)
    table.reset()
    gate.validate(MET)
    with pytest.raises(SinkRefusalError, match="another driver has written") as refused:
        stage.catch_up(NOW)
    assert stage.failure(refused.value) == "another driver has written"
    assert stage.catch_up(NOW)
    assert table.events == ["held", "passed"]


def test_a_mirror_of_another_copy_is_refused(gate: Gate, start: Start) -> None:
    table = Table(version=MirrorVersion("gates of another", 1, "", 1))
    with pytest.raises(SinkRefusalError, match="another copy of gold/per_minute"):
        start(table).catch_up(NOW)


@pytest.mark.parametrize("kind", ["log", "mirror"])
def test_the_position_follows_gold_from_time_to_time(
    gate: Gate, start: Start, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("headgate.flow.publish.gate_stages.MOST_UNSENT", 2)
    stage = log_stage(gate, Log()) if kind == "log" else start(Table())
    found = []
    for _ in range(4):
        gate.commit()
        assert stage.catch_up(NOW)
        found.append(gate.position.version)
    assert found == [0, 2, 2, 4]
