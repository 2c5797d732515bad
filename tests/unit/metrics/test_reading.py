"""The samples of a pipeline, from its tables and documents, whatever state they are in."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline, Publication, PublishedLayer
from headgate.ledger import Ledger, balance
from headgate.metrics.histograms import Histograms
from headgate.metrics.parts.contract import Place
from headgate.metrics.parts.ledger import LedgerPart
from headgate.metrics.parts.stream import capped
from headgate.metrics.parts.tables import TablesPart
from headgate.metrics.pipeline import PipelineReading
from headgate.metrics.samples import Sample
from headgate.metrics.tail import TableTail
from headgate.publish.position import Position
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import Unreadable, create, read_savepoint
from headgate.sinks.letters import DeadLetters, Letter
from headgate.storage.backlog import Backlog, PartitionBacklog
from headgate.storage.layout import Layout
from headgate.storage.ownership import Owner
from headgate.tables.log import Commit, entry_path, read_commit
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.state import commit_time, time_of
from tests.unit.ledger.conftest import Lake, bronze, fill
from tests.unit.metrics.conftest import NOW, Clock, observed, value, values
from tests.unit.supervision.conftest import lease, report

PARTS = ("declaration", "tables", "stream", "gates", "state", "savepoints", "ledger")
SOUND = {(part,): 1.0 for part in PARTS}


class Reading:
    def __init__(self, place: Place, histograms: Histograms, clock: Clock) -> None:
        self.clock = clock
        self._reading = PipelineReading(place.declared, place.layout, histograms, monotonic=clock)

    def __call__(self, now: datetime = NOW, *, after: float = 3600.0) -> tuple[Sample, ...]:
        """The samples that are read ``after`` seconds later; by default, every part is due then."""
        self.clock.now += after
        return self._reading.refresh(now)


@pytest.fixture
def read(place: Place, histograms: Histograms, clock: Clock) -> Reading:
    return Reading(place, histograms, clock)


def unreadable(samples: Iterable[Sample]) -> set[str]:
    return {labels[0] for labels, readable in values(samples, "readable").items() if not readable}


def test_a_pipeline_that_has_never_run_is_read_without_an_error(read: Reading) -> None:
    found = read()
    assert values(found, "readable") == SOUND
    assert value(found, "condition", "absent") == 1
    assert value(found, "meant_to_run") == 0
    assert value(found, "savepoints") == 0
    assert values(found, "records_total") == {}
    assert values(found, "ledger_differences") == {}


def test_counts_are_those_of_the_commits(lake: Lake, read: Reading) -> None:
    fill(lake)
    found = read()
    assert value(found, "read_records_total", "events") == 7
    size = {"valid": 450, "quarantined": 50, "duplicate": 100}
    assert values(found, "read_bytes_total") == {("events", k): v for k, v in size.items()}
    outcomes = {"silver": 3, "quarantined": 1, "rejected": 0, "filtered": 1, "duplicate": 1}
    assert values(found, "records_total") == {
        ("events", "silver/good", outcome): count for outcome, count in outcomes.items()
    }
    assert values(found, "pairs_total") == {
        ("gold/per_minute", "folded"): 2,
        ("gold/per_minute", "late"): 1,
    }
    assert values(found, "lag_batches") == {
        ("bronze/events",): 0,
        ("silver/good",): 1,
        ("gold/per_minute",): 1,
    }


def test_a_new_process_serves_the_same_counts(
    lake: Lake, read: Reading, place: Place, clock: Clock
) -> None:
    fill(lake)
    again = Reading(place, Histograms(), clock)
    for metric in ("read_records_total", "records_total", "pairs_total", "final_rows_total"):
        assert values(again(), metric) == values(read(), metric) != {}


def test_the_ledger_balances_what_was_read_with_what_is_accounted(
    lake: Lake, read: Reading
) -> None:
    fill(lake)
    found = read()
    assert value(found, "ledger_read_records", "silver/good") == 6
    assert value(found, "ledger_accounted_records", "silver/good") == 6
    assert value(found, "ledger_differences") == 0


def test_a_record_that_is_not_accounted_for_is_seen(lake: Lake, read: Reading) -> None:
    fill(lake, silver_counts={"silver": 3, "filtered": 0, "quarantined": 1, "duplicate": 1})
    found = read()
    assert value(found, "ledger_difference_records", "silver/good") == 1
    assert value(found, "ledger_differences") == 1


def test_a_publication_that_has_not_begun_does_not_hide_the_ledger(
    lake: Lake, histograms: Histograms, clock: Clock
) -> None:
    """It has no table before the next start of a driver."""
    fill(lake)
    published = {"out": Publication("out", "gold", "per_minute", "final", "kafka", None)}
    pipeline = replace(lake.pipeline, publish=published)
    read = Reading(Place(pipeline, lake.layout), histograms, clock)
    assert value(read(), "ledger_differences") == 0


def test_events_of_a_gate_are_no_commits_that_wait(
    lake: Lake, histograms: Histograms, clock: Clock
) -> None:
    fill(lake)
    layers: tuple[PublishedLayer, ...] = ("gold", "gate")
    published: dict[str, Publication] = {
        layer: Publication(layer, layer, "per_minute", None, "kafka", None) for layer in layers
    }
    pipeline = replace(lake.pipeline, publish=published)
    for each in published.values():
        Position(lake.layout.storage, pipeline, each).create()
    found = Reading(Place(pipeline, lake.layout), histograms, clock)()
    assert values(found, "publication_lag_commits") == {("gold",): 1}
    assert set(values(found, "publication_lag_seconds")) == {("gold",)}


def test_a_source_that_has_never_delivered_is_missed_from_its_table_on(
    lake: Lake, read: Reading
) -> None:
    table = lake.table("bronze/events")
    created = read_commit(table.storage, 0)
    assert created is not None
    assert created.written_at is not None
    metric = "last_record_timestamp_seconds"
    assert value(read(), metric, "events") == time_of(created.written_at).timestamp()
    lake.commit("bronze/events", 1, [], {"read": 0})
    assert value(read(), metric, "events") == time_of(created.written_at).timestamp()
    table.commit(table.refresh().advanced_to(2, NOW).counting({"read": 1}, changed=True))
    assert value(read(), metric, "events") == NOW.timestamp()


def test_an_old_entry_that_is_damaged_hides_nothing_else(lake: Lake, read: Reading) -> None:
    fill(lake)
    lake.layout.storage.write(f"bronze/events/{entry_path(0)}", b"{}")
    assert values(read(), "readable") | {("ledger",): 1.0} == SOUND
    assert values(read(), "last_record_timestamp_seconds") == {}


def test_batches_above_the_declared_limit_are_counted(
    lake: Lake, histograms: Histograms, clock: Clock
) -> None:
    fill(lake)
    file = Path(lake.pipeline.file)
    file.write_text(f"{file.read_text()}metrics: {{latency_within: 100 s}}\n")
    read = Reading(Place(load(file), lake.layout), histograms, clock)
    assert value(read(), "slow_batches_total", "gold/per_minute") == 0
    for n, seconds in ((3, 90), (4, 110)):
        table = lake.table("bronze/events")
        state = table.refresh().advanced_to(n, NOW)
        arrived = commit_time(datetime.now(UTC) - timedelta(seconds=seconds))
        table.commit(replace(state, payload=replace(BronzePayload.of(state), arrived=arrived)))
        lake.commit("silver/good", n, [], {})
        lake.commit("gold/per_minute", n, [], {})
    found = read()
    assert observed(histograms, "arrival_to_gold_seconds", "gold/per_minute")[0] == 2
    assert value(found, "slow_batches_total", "gold/per_minute") == 1


def test_the_ledger_is_balanced_again_only_if_a_table_has_changed(
    lake: Lake, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Pipeline] = []

    def counted(at: Layout, of: Pipeline) -> Ledger:
        calls.append(of)
        return balance(at, of)

    monkeypatch.setattr("headgate.metrics.parts.ledger.balance", counted)
    fill(lake)
    read(), read(), read()
    assert len(calls) == 1
    lake.commit("bronze/events", 3, [bronze(7)], {"read": 1})
    assert value(read(), "ledger_differences") == 0
    assert len(calls) == 2


def test_a_gold_table_that_is_not_deployed_yet_hides_no_ledger(
    lake: Lake, histograms: Histograms, clock: Clock
) -> None:
    fill(lake)
    file = Path(lake.pipeline.file)
    text = file.read_text()
    table = text[text.index("  per_minute:") :].replace("per_minute", "per_hour")
    file.write_text(text + table)
    read = Reading(Place(load(file), lake.layout), histograms, clock)
    found = read()
    assert values(found, "readable") == SOUND
    assert value(found, "ledger_differences") == 0
    assert value(found, "ledger_read_records", "silver/good") == 6


def test_a_damaged_table_hides_only_what_is_read_of_it(
    lake: Lake, read: Reading, place: Place
) -> None:
    fill(lake)
    read()
    lake.commit("silver/good", 2, [], {"silver": 0})
    entry = f"silver/good/{entry_path(2)}"
    whole = place.layout.storage.read(entry)
    place.layout.storage.write(entry, whole.replace(b'"n":2', b'"n":3'))
    found = read()
    assert "tables" in unreadable(found)
    assert "stream" not in unreadable(found)
    assert values(found, "records_total") == {}, "old counts would look as if they were true"
    assert value(found, "condition", "absent") == 1
    place.layout.storage.write(entry, whole)
    assert values(read(), "readable") == SOUND


@pytest.mark.parametrize("folder", ["bronze", "silver", "gold", "_headgate"])
def test_a_folder_that_is_gone_raises_nothing(lake: Lake, read: Reading, folder: str) -> None:
    fill(lake)
    read()
    shutil.rmtree(lake.layout.storage.uri(folder))
    assert value(read(), "condition", "absent") == 1


def test_a_damaged_document_hides_the_stream_alone(lake: Lake, read: Reading, place: Place) -> None:
    fill(lake)
    lease(place.layout, Owner.here())
    place.layout.storage.write("_headgate/status-fused.json", b"{")
    found = read()
    assert unreadable(found) == {"stream"}
    assert value(found, "read_records_total", "events") == 7


def test_a_driver_that_is_killed_is_down_and_meant_to_run(read: Reading, place: Place) -> None:
    lease(place.layout, replace(Owner.here(), started=1.0), renewed=NOW)
    report(place.layout, "fused", epoch=1, n=3, samples=[])
    found = read()
    assert value(found, "condition", "dead") == 1
    assert (value(found, "meant_to_run"), value(found, "running")) == (1, 0)


def test_a_driver_that_runs_reports_its_backlog(read: Reading, place: Place) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    parts = {"bids/0": PartitionBacklog(5, 2.5), "bids/1": PartitionBacklog(0, 0.0)}
    backlog = Backlog("records", 5, partitions=parts)
    more = {"trouble": "why", "stuck": {"out": {"since": NOW.isoformat(), "why": "no"}}}
    report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], **more)
    found = read()
    assert value(found, "running") == 1
    assert value(found, "trouble", "fused") == 1
    assert value(found, "publication_stuck_timestamp_seconds", "out") == NOW.timestamp()
    assert values(found, "backlog_records") == {("events", "bids/0"): 5, ("events", "bids/1"): 0}
    assert value(found, "backlog_age_seconds", "events", "bids/0") == 2.5


@pytest.mark.parametrize("trouble", [None, "publish out: it is down"])
def test_a_backlog_that_grows_is_backpressure(
    read: Reading, place: Place, trouble: str | None
) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    pressed = []
    for step in range(6):
        backlog = Backlog("files", 100 + 40 * step, 1000)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], trouble=trouble)
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
        pressed.append(value(found, "backpressure"))
    assert pressed[0] == 0
    assert pressed[-1] == 1
    for step in range(6, 16):
        backlog = Backlog("files", 10, 1000) if step == 6 else Backlog("files", 0, 0)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[])
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
    assert value(found, "backpressure") == 0


def test_a_pause_is_no_backpressure_and_what_was_before_does_not_count(
    read: Reading, place: Place
) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    for step in range(12):
        paused = {"paused": NOW} if step == 5 else {}
        backlog = Backlog("files", 100 + 40 * step, 1000)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], **paused)
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
        is_known = step in (3, 4) or step >= 9
        assert value(found, "backpressure") == is_known, step


def test_downstream_tables_are_read_first(
    lake: Lake, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    polled = list[str]()
    poll = TableTail.poll

    def remembered(tail: TableTail) -> tuple[Commit, ...]:
        polled.append(tail.path)
        return poll(tail)

    monkeypatch.setattr(TableTail, "poll", remembered)
    read()
    order = ("gold/per_minute", "late/per_minute", "silver/good", "bronze/events")
    assert [path for path in polled if path in order] == list(order)


def test_partitions_are_capped_and_nothing_is_lost() -> None:
    parts = {f"bids/{n}": PartitionBacklog(n, float(n)) for n in range(250)}
    kept = capped(parts)
    assert len(kept) == 100
    assert list(kept)[:3] == ["bids/0", "bids/1", "bids/2"]
    assert sum(part.records for part in kept.values()) == sum(range(250))
    assert kept["others"].seconds == 249.0
    few = {name: parts[name] for name in list(parts)[:100]}
    assert capped(few) == few


def test_savepoints_are_read_once_and_the_newest_counts(
    lake: Lake, read: Reading, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    taken = [create(place.layout, place.declared, NOW - timedelta(hours=hours)) for hours in (5, 2)]
    ids: list[str] = []

    def remembered(at: Layout, id_: str) -> Savepoint | Unreadable | None:
        ids.append(id_)
        return read_savepoint(at, id_)

    monkeypatch.setattr("headgate.metrics.parts.savepoints.read_savepoint", remembered)
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


def test_a_savepoint_that_is_deleted_while_it_is_read_is_not_damaged(
    lake: Lake, read: Reading, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    create(place.layout, place.declared, NOW)
    monkeypatch.setattr("headgate.metrics.parts.savepoints.read_savepoint", lambda *_: None)
    found = read()
    assert (value(found, "savepoints"), value(found, "savepoints_damaged")) == (0, 0)


def test_limits_are_the_declarations_own(tmp_path: Path, place: Place, clock: Clock) -> None:
    text = place.declared.file.read_text()
    text = text.replace("files: {path", "expect_input_every: 5 minutes\n    files: {path")
    file = tmp_path / "other.yml"
    file.write_text(
        f"{text}savepoints: {{every: 1 hour}}\nmetrics: {{latency_within: 3 seconds}}\n"
    )
    found = Reading(replace(place, declared=load(file)), Histograms(), clock)()
    assert values(found, "limit_seconds") == {
        ("freshness",): 600,
        ("backlog",): 900,
        ("publication",): 900,
        ("latency",): 3,
        ("savepoint",): 7260,
    }
    assert value(found, "expected_input_seconds", "events") == 300
    assert values(found, "expected_event_time_lag_seconds") == {}


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
    place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch
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


def test_dead_letters_are_counted(lake: Lake, histograms: Histograms, clock: Clock) -> None:
    file = Path(lake.pipeline.file)
    sink = "webhook: {url: 'http://127.0.0.1:1'}"
    text = f"{file.read_text()}publish:\n  finals: {{from: gold.per_minute, {sink}}}\n"
    file.write_text(text)
    read = Reading(Place(load(file), lake.layout), histograms, clock)
    assert value(read(), "publication_dead_letters", "finals") == 0
    DeadLetters(lake.layout.storage, "finals").keep(
        Letter("1abc", b"{}", {}, "answers 500", 8, NOW)
    )
    assert value(read(), "publication_dead_letters", "finals") == 1
