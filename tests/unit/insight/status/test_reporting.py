"""What is reported of a stream, over a small pipeline's tables and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import Hold
from headgate.history.savepoints.store import create_savepoint
from headgate.insight.status.batch_times import BatchTime
from headgate.insight.status.freshness import Freshness, SourceFreshness, StepFreshness
from headgate.insight.status.report import (
    TablesReport,
    status_document,
    stream_status,
    tables_document,
    tables_of_stream,
)
from headgate.lake.control.driver_reports import Backlog, Failure, PartitionBacklog, record_failure
from headgate.lake.control.driver_requests import pause, request_stop
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import JobState, probe
from tests.support.reported import at_b, with_source
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill
from tests.unit.supervision.conftest import NOW, lease, report

JOB = JobState(
    "fused",
    LAYERS,
    "running",
    Owner(1, "here", 0.0),
    epoch=3,
    since=NOW - timedelta(hours=1),
    renewed=NOW,
    rows=500,
    seconds=2.0,
    sources=at_b(n=7, backlog=Backlog("files"), watermark=NOW - timedelta(seconds=20)),
    updated=NOW,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    return Lake(tmp_path / "lake", load(file))


def test_a_stream_that_runs(layout: Layout) -> None:
    status = stream_status(layout, [JOB], NOW)
    assert (status.condition, status.since) == ("running", JOB.since)
    assert (status.sources, status.rows, status.seconds) == (JOB.sources, 500, 2.0)
    assert status.level == NOW
    assert status.is_alive


def test_a_stream_that_never_ran(layout: Layout) -> None:
    status = stream_status(layout, probe(layout, NOW), NOW)
    assert (status.condition, status.since, status.sources) == ("absent", None, {})
    assert not status.is_alive


def test_the_first_observation_uses_the_times_of_the_jobs(layout: Layout) -> None:
    stands = replace(JOB, updated=NOW - timedelta(minutes=14))
    assert stream_status(layout, [stands], NOW).condition == "running"
    longer = replace(JOB, updated=NOW - timedelta(minutes=16))
    assert stream_status(layout, [longer], NOW).condition == "stuck"
    began = replace(longer, since=NOW - timedelta(seconds=5))
    assert stream_status(layout, [began], NOW).condition == "running"


@pytest.mark.parametrize("state", ["dead", "stale", "stopped"])
def test_since_when_it_is_down_is_when_it_was_last_heard_of(layout: Layout, state: str) -> None:
    heard = NOW - timedelta(minutes=3)
    status = stream_status(layout, [replace(JOB, state=state, renewed=heard)], NOW)  # type: ignore[arg-type]
    assert status.condition == ("ended" if state == "stopped" else "dead")
    assert status.since == heard


def test_rest_and_pause(layout: Layout) -> None:
    since = pause(layout, NOW - timedelta(minutes=1))
    assert stream_status(layout, [replace(JOB, state="paused")], NOW).since == since
    lease(layout, Owner.here(), epoch=JOB.epoch)
    request_stop(layout)
    assert stream_status(layout, [replace(JOB, state="stopped")], NOW).condition == "resting"


def test_a_failure_is_reported_until_the_stream_runs_again(layout: Layout) -> None:
    at = NOW - timedelta(minutes=1)
    record_failure(layout, Failure(3, "a file is gone", "headgate files skip", at))
    status = status_document(stream_status(layout, [replace(JOB, state="stopped")], NOW))
    assert (status["condition"], status["ended"], status["since"]) == (
        "failed",
        "failed",
        at.isoformat(),
    )
    assert status["failure"] == {
        "code": 3,
        "reason": "a file is gone",
        "remedy": "headgate files skip",
        "at": at.isoformat(),
        "commands": [],
    }
    running = stream_status(layout, [JOB], NOW)
    assert (running.condition, running.ended, running.failure) == ("running", None, None)


def test_a_finished_run_is_no_failure(layout: Layout) -> None:
    status = stream_status(layout, [replace(JOB, state="stopped", finished=True)], NOW)
    assert (status.ended, status.failure) == ("finished", None)


def test_of_three_jobs_bronze_gives_the_input_and_the_slowest_the_age_of_gold(
    layout: Layout,
) -> None:
    old = NOW - timedelta(minutes=5)
    bronze = replace(JOB, job="bronze", layers=("bronze",))
    gold = replace(JOB, job="gold", layers=("gold",), updated=old, trouble="a full disk")
    gold = with_source(gold, n=4)
    status = stream_status(layout, [gold, bronze], NOW)
    assert (status.sources["b"].n, status.level, status.trouble) == (7, old, "a full disk")


def test_trouble_of_a_job_that_is_gone_is_no_news(layout: Layout) -> None:
    assert (
        stream_status(layout, [replace(JOB, state="dead", trouble="a disk")], NOW).trouble is None
    )


def test_a_damaged_document_is_an_error(layout: Layout) -> None:
    lease(layout, JOB.owner)
    report(layout, "fused", epoch=1, n=7)
    file = Path(layout.storage.uri(Layout.document("status-fused")))
    file.write_text(file.read_text().replace('"n": 7', '"n": 8'))
    with pytest.raises(HeadgateError, match="damaged"):
        probe(layout, NOW)


def test_the_tables_of_a_stream(lake: Lake) -> None:
    fill(lake)
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC), "a note")
    tables = tables_of_stream(lake.layout, lake.pipeline)
    assert tables.problems == {}
    account = tables.account
    assert account is not None
    ledger = account.ledger
    assert (ledger.batches, ledger.read, ledger.duplicate, ledger.quarantined) == (2, 7, 1, 1)
    assert ledger.differences == ()
    assert [(g.table, g.lag, g.late) for g in ledger.gold] == [("per_minute", 1, 1)]
    assert tables.savepoints == (taken,)
    assert tables.history is not None
    assert [(batch.n, batch.rows) for batch in tables.history["events"]] == [(1, 6), (2, 1)]
    unknown = {"events": SourceFreshness()}
    assert tables.freshness == Freshness({"per_minute": None}, unknown)


def test_the_page_shows_when_gold_changed() -> None:
    steps = {"b": StepFreshness(timedelta(seconds=30), NOW)}
    fresh = Freshness({"a": NOW, "b": None}, {"s": SourceFreshness(NOW)}, steps)
    document = tables_document(TablesReport(freshness=fresh))
    assert document["freshness"] == {
        "gold": {"a": NOW.isoformat(), "b": None},
        "sources": {"s": {"clock": NOW.isoformat(), "arrived": None}},
        "steps": {"b": {"step": 30.0, "lacks_since": NOW.isoformat()}},
        "inputs": [],
        "changed": NOW.isoformat(),
    }


def test_tables_that_never_were(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    tables = tables_of_stream(Layout.of(str(tmp_path), "tiny"), load(file))
    assert (tables.account, tables.savepoints, tables.history) == (None, None, None)
    assert tables.problems == {}


def history_of(lake: Lake) -> Sequence[BatchTime]:
    history = tables_of_stream(lake.layout, lake.pipeline).history
    assert history is not None
    return history["events"]


def test_the_time_of_a_batch_is_that_until_all_gold_has_it(lake: Lake) -> None:
    fill(lake)
    first, second = history_of(lake)
    assert first.done is not None
    assert first.done >= first.took
    assert second.done is None, "gold is a batch behind"
    gold = Table(lake.layout.storage, "gold/per_minute", pipeline="tiny")
    bronze = Table(lake.layout.storage, "bronze/events", pipeline="tiny")
    for table in (bronze, gold):
        table.commit(replace(table.refresh(), kind="fence", generation=1))
    first, _ = history_of(lake)
    assert first.done is None, "gold has it again since a restore"


def test_a_ledger_that_does_not_balance_is_reported(lake: Lake) -> None:
    fill(lake, late_rows=())
    document = tables_document(tables_of_stream(lake.layout, lake.pipeline))
    assert document["account"]["differences"] == [
        "gold/per_minute: late = rows of its late table: expected 1, found 0 (batch 1)",
    ]


def test_a_damaged_table_hides_nothing_else(lake: Lake) -> None:
    fill(lake)
    create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    entry = "gold/per_minute/_delta_log/00000000000000000001.json"
    Path(lake.layout.storage.uri(entry)).write_text("{")
    tables = tables_of_stream(lake.layout, lake.pipeline)
    assert tables.account is None
    assert list(tables.problems) == ["account", "freshness"]
    assert tables.history is not None
    assert tables.savepoints is not None


def test_a_damaged_savepoint_is_counted(lake: Lake) -> None:
    fill(lake)
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    Path(lake.layout.storage.uri(Layout.savepoint(taken.id))).write_text("{}")
    found = tables_document(tables_of_stream(lake.layout, lake.pipeline))["savepoints"]
    assert found == {"number": 1, "damaged": 1, "newest": []}


def test_documents_have_plain_values(lake: Lake) -> None:
    fill(lake)
    behind = Backlog("records", 9, partitions={"t/0": PartitionBacklog(9, 61.0)})
    status = status_document(stream_status(lake.layout, [with_source(JOB, backlog=behind)], NOW))
    assert status["since"] == JOB.since.isoformat()
    backlog = status["sources"]["b"]["backlog"]
    assert backlog["partitions"] == {
        "t/0": {"records": 9, "seconds": 61.0, "clock": None, "idle": False}
    }
    assert backlog["says"] == "9 records 61 s"
    assert backlog["holding"] == "t/0"
    assert status["jobs"][0]["process"] == "1 on here"
    tables = tables_document(tables_of_stream(lake.layout, lake.pipeline))
    assert isinstance(tables["history"]["events"][0]["took"], float)
    assert tables["account"]["gold"][0]["final"] is None


def test_the_document_of_tables_has_what_the_page_shows(lake: Lake) -> None:
    fill(lake)
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC), "a note")
    met = RuleResult("few", "critical", "hold", met=True, observed="1")
    held = Hold("per_minute", 1, 2, NOW, NOW, (met, replace(met, met=False, observed="9")))
    tables = tables_of_stream(lake.layout, lake.pipeline)
    document = tables_document(replace(tables, held=(held,)))
    assert [each.keys() for each in document.pop("history")["events"]] == [
        {"n", "committed", "took", "done", "rows"}
    ] * 2
    assert document == {
        "notices": [],
        "account": {
            "n": {"events": 2},
            "generation": 0,
            "read": 7,
            "duplicate": 1,
            "quarantined": 1,
            "rejected": 0,
            "set_aside": 0,
            "filtered": 1,
            "silver_read": 6,
            "pairs": 3,
            "late": 1,
            "gaps": 0,
            "differences": [],
            "gold": [
                {
                    "table": "per_minute",
                    "source": "events",
                    "final": None,
                    "lag": 1,
                    "rows": 1,
                    "pairs": 3,
                    "late": 1,
                }
            ],
        },
        "savepoints": {
            "number": 1,
            "damaged": 0,
            "newest": [
                {
                    "id": taken.id,
                    "created": taken.created.isoformat(),
                    "note": "a note",
                    "n": {"events": 1},
                }
            ],
        },
        "freshness": {
            "gold": {"per_minute": None},
            "sources": {"events": {"clock": None, "arrived": None}},
            "steps": {},
            "inputs": [],
            "changed": None,
        },
        "held": [
            {
                "table": "gold/per_minute",
                "n": 1,
                "since": NOW.isoformat(),
                "rules": ["few (critical): not met, it is 9"],
                "is_rejectable": False,
            }
        ],
        "past": {"loads": [], "replays": [], "backfills": []},
        "problems": {},
        "has_rules": False,
    }
