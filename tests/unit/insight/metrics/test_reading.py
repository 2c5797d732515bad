"""The samples of a pipeline, from its tables and documents, whatever state they are in."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Explode, Publication, PublishedLayer
from headgate.flow.publish.publication import PublishedPosition
from headgate.flow.publish.sinks.letters import DeadLetters, Letter
from headgate.history.savepoints.store import create_savepoint
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.tail import TableTail
from headgate.lake.tables.log import Commit, entry_path, read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import commit_time, time_of
from tests.unit.insight.ledger.conftest import NOON, Lake, fill
from tests.unit.insight.metrics.conftest import (
    NOW,
    Clock,
    Reading,
    observed,
    unreadable,
    value,
    values,
)

PARTS = ("declaration", "tables", "stream", "gates", "state", "savepoints", "ledger")
SOUND = {(part,): 1.0 for part in PARTS}


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


def test_items_are_counted_beside_records(lake: Lake, place: WatchedPipeline, clock: Clock) -> None:
    of_records = {"quarantined": 1, "duplicate": 1, "empty": 3, "exploded": 1}
    of_items = {"silver": 3, "filtered": 4, "rejected": 0}
    fill(lake, silver_counts={**of_records, **of_items, "items": 7})
    good = replace(place.declared.silver["good"], explode=Explode("line", "items"))
    declared = replace(place.declared, silver={"good": good})
    found = Reading(replace(place, declared=declared), Histograms(), clock)()
    for metric, counts in (("records_total", of_records), ("items_total", of_items)):
        wanted = {("events", "silver/good", name): count for name, count in counts.items()}
        assert values(found, metric) == wanted
    assert value(found, "ledger_difference_records", "silver/good") == 0


def test_a_new_process_serves_the_same_counts(
    lake: Lake, read: Reading, place: WatchedPipeline, clock: Clock
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
    read = Reading(WatchedPipeline(pipeline, lake.layout), histograms, clock)
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
        PublishedPosition(lake.layout.storage, pipeline, each).create()
    found = Reading(WatchedPipeline(pipeline, lake.layout), histograms, clock)()
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


@pytest.mark.parametrize(
    ("step", "seconds"), [("", 20), ("    step: 80 s\n", 100), ("    step: auto\n", 620)]
)
def test_batches_above_the_declared_limit_are_counted(
    lake: Lake, histograms: Histograms, clock: Clock, step: str, seconds: int
) -> None:
    """The step of a table is added to the limit."""
    fill(lake)
    file = Path(lake.pipeline.file)
    file.write_text(f"{file.read_text()}{step}metrics: {{latency_within: 20 s}}\n")
    read = Reading(WatchedPipeline(load(file), lake.layout), histograms, clock)
    assert value(read(), "slow_batches_total", "gold/per_minute") == 0
    for n, more in ((3, -10), (4, 10)):
        table = lake.table("bronze/events")
        state = table.refresh().advanced_to(n, NOW)
        arrived = commit_time(datetime.now(UTC) - timedelta(seconds=seconds + more))
        table.commit(replace(state, payload=replace(BronzePayload.of(state), arrived=arrived)))
        lake.commit("silver/good", n, [], {})
        lake.commit("gold/per_minute", n, [], {})
    found = read()
    assert value(found, "results_age_seconds", "gold/per_minute") == 0
    assert observed(histograms, "arrival_to_gold_seconds", "gold/per_minute")[0] == 2
    assert value(found, "slow_batches_total", "gold/per_minute") == 1


def test_a_gold_table_that_is_not_deployed_yet_hides_no_ledger(
    lake: Lake, histograms: Histograms, clock: Clock
) -> None:
    fill(lake)
    file = Path(lake.pipeline.file)
    text = file.read_text()
    table = text[text.index("  per_minute:") :].replace("per_minute", "per_hour")
    file.write_text(text + table)
    read = Reading(WatchedPipeline(load(file), lake.layout), histograms, clock)
    found = read()
    assert values(found, "readable") == SOUND
    assert value(found, "ledger_differences") == 0
    assert value(found, "ledger_read_records", "silver/good") == 6


def test_a_damaged_table_hides_only_what_is_read_of_it(
    lake: Lake, read: Reading, place: WatchedPipeline
) -> None:
    fill(lake)
    stored = "stored_bytes_total", "gold/per_minute"
    before = value(read(), *stored)
    lake.commit("silver/good", 2, [], {"silver": 0})
    lake.commit("gold/per_minute", 2, [{"window_start": NOON, "events": 1}], {})
    entry = f"silver/good/{entry_path(2)}"
    whole = place.layout.storage.read(entry)
    place.layout.storage.write(entry, whole.replace(b'"n":2', b'"n":3'))
    found = read()
    assert "tables" in unreadable(found)
    assert "stream" not in unreadable(found)
    assert values(found, "records_total") == {}, "old counts would look as if they were true"
    assert value(found, "condition", "absent") == 1
    read()
    place.layout.storage.write(entry, whole)
    found = read()
    assert values(found, "readable") == SOUND
    assert value(found, *stored) > before, "what gold had committed meanwhile"


@pytest.mark.parametrize("folder", ["bronze", "silver", "gold", "_headgate"])
def test_a_folder_that_is_gone_raises_nothing(lake: Lake, read: Reading, folder: str) -> None:
    fill(lake)
    read()
    shutil.rmtree(lake.layout.storage.uri(folder))
    assert value(read(), "condition", "absent") == 1


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


def test_a_savepoint_that_is_deleted_while_it_is_read_is_not_damaged(
    lake: Lake, read: Reading, place: WatchedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    create_savepoint(place.layout, place.declared, NOW)
    monkeypatch.setattr("headgate.insight.metrics.parts.savepoints.read_savepoint", lambda *_: None)
    found = read()
    assert (value(found, "savepoints"), value(found, "savepoints_damaged")) == (0, 0)


def test_dead_letters_are_counted(lake: Lake, histograms: Histograms, clock: Clock) -> None:
    file = Path(lake.pipeline.file)
    sink = "webhook: {url: 'http://127.0.0.1:1'}"
    text = f"{file.read_text()}publish:\n  finals: {{from: gold.per_minute, {sink}}}\n"
    file.write_text(text)
    read = Reading(WatchedPipeline(load(file), lake.layout), histograms, clock)
    assert value(read(), "publication_dead_letters", "finals") == 0
    DeadLetters(lake.layout.storage, "finals").keep(
        Letter("1abc", b"{}", {}, "answers 500", 8, NOW)
    )
    assert value(read(), "publication_dead_letters", "finals") == 1
