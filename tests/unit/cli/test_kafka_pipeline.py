"""What verbs print about a pipeline that reads Kafka, without a broker and without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.driving import jars_for
from headgate.cli.inspect.status_screen import furthest
from headgate.cli.lifecycle.background import _start
from headgate.declaration.kafka.section import KafkaSink
from headgate.declaration.load import load
from headgate.declaration.model import Publication
from headgate.driver.progress import JobProgress
from headgate.errors import HeadgateError
from headgate.insight.ledger import balance
from headgate.insight.querying.names import tables
from headgate.lake.control.driver_reports import Backlog, PartitionBacklog
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table
from headgate.supervision.local import Started
from headgate.supervision.logs import run_log
from tests.support.reported import at_b
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.declaration.conftest import KAFKA
from tests.unit.insight.ledger.conftest import DECLARATION, Lake
from tests.unit.supervision.conftest import lease, report

OfLake = tuple[str, str, str]
GAP = {"topic": "bids", "partition": 2, "first": 1000, "end": 2500, "reason": "expired"}
FILES = "files: {path: landing, format: json}"
TOPIC = "kafka: {servers: 127.0.0.1:1, topic: bids, max_per_batch: 1000, batch_target: 10 s}"


@pytest.fixture
def topic(lake: Lake) -> Lake:
    """The tiny lake, as if it had been read from a topic."""
    lake.pipeline.file.write_text(DECLARATION.replace(FILES, TOPIC))
    lake.layout.storage.remove("_headgate/files")
    return lake


def behind(layout: Layout, backlog: Backlog, **more: Any) -> None:
    lease(layout, Owner.here(), epoch=3, renewed=datetime.now(UTC))
    report(layout, "fused", epoch=3, n=2, source="events", backlog=backlog, **more)


def lost(lake: Lake, *gaps: dict[str, Any]) -> None:
    """Commit to bronze that these gaps were accepted."""
    table = Table(lake.layout.storage, "bronze/events", pipeline="tiny")
    table.commit(replace(table.refresh(), payload=BronzePayload(gaps=gaps), batch={}))


def test_partitions_trouble_and_all(ask: Ask, of_lake: OfLake, topic: Lake) -> None:
    parts = {"bids/0": PartitionBacklog(0, 0.0), "bids/1": PartitionBacklog(1200, 12.4)}
    trouble = "no answer from the brokers 127.0.0.1:1 for 12 s"
    behind(topic.layout, Backlog("records", 1200, partitions=parts), trouble=trouble)
    out = ask("status", *of_lake)[1]
    assert "1,200 records 12 s" in out
    lines = [line.split() for line in out.splitlines()]
    assert lines.index(["bids/1", "1,200", "12", "s"]) + 1 == lines.index(["bids/0", "0", "0", "s"])
    assert f"fused: {trouble}" in out
    (job,) = last_object(ask("status", *of_lake, "--json")[1])["jobs"]
    assert job["backlog"]["partitions"]["bids/1"] == {
        "records": 1200,
        "seconds": 12.4,
        "clock": None,
        "idle": False,
    }
    assert job["trouble"] == trouble
    assert job["trend"] is None


def test_of_a_hundred_partitions_the_ten_furthest_behind(
    ask: Ask, of_lake: OfLake, topic: Lake
) -> None:
    parts = {f"bids/{i}": PartitionBacklog(i, 1.0) for i in range(100)}
    behind(topic.layout, Backlog("records", 4950, partitions=parts))
    lines = [line.split() for line in ask("status", *of_lake)[1].splitlines()]
    named = [words[0] for words in lines if words and words[0].startswith("bids/")]
    assert named == [f"bids/{i}" for i in range(99, 89, -1)]
    assert ["90", "more", f"{sum(range(90)):,}"] in lines


NOON, LATER = "2026-11-23T12:00:00.000000+00:00", "2026-11-23T12:00:00.250000+00:00"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"a": (LATER, False), "b": (NOON, False)}, "waits for b, at 2026-11-23 12:00:00Z"),
        ({"a": (LATER, False), "b": (NOON, True)}, "waits for a, at 2026-11-23 12:00:00Z"),
        (
            {"a": (NOON, False), "b": (None, False)},
            "waits for b: it has no record with a valid time",
        ),
        ({"a": (NOON, True), "b": (None, True)}, "all of them are idle"),
    ],
)
def test_what_the_event_clock_waits_for(
    ask: Ask,
    of_lake: OfLake,
    topic: Lake,
    parts: dict[str, tuple[str | None, bool]],
    says: str,
) -> None:
    partitions = {name: PartitionBacklog(0, 0.0, *told) for name, told in parts.items()}
    behind(topic.layout, Backlog("records", 0, partitions=partitions))
    assert says in " ".join(ask("status", *of_lake)[1].split())


def test_one_partition_needs_no_telling(ask: Ask, of_lake: OfLake, topic: Lake) -> None:
    behind(topic.layout, Backlog("records", 0, partitions={"a": PartitionBacklog(0, 0.0, NOON)}))
    assert "waits for" not in ask("status", *of_lake)[1]


def test_the_order_of_partitions() -> None:
    parts = {
        "a": PartitionBacklog(5, 1.0),
        "b": PartitionBacklog(7, 0.0),
        "c": PartitionBacklog(5, 9.0),
        "d": PartitionBacklog(5, 1.0),
    }
    assert [name for name, _ in furthest(parts)] == ["b", "c", "a", "d"]


def samples(backlog: int, growth: int, processed: int) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {
            "at": (now - timedelta(seconds=5 * i)).isoformat(),
            "backlog": backlog - growth * 5 * i,
            "read": 1_000_000 - processed * 5 * i,
        }
        for i in range(9, -1, -1)
    ]


def test_how_the_backlog_moves(ask: Ask, of_lake: OfLake, topic: Lake) -> None:
    behind(topic.layout, Backlog("records", 90_000), samples=samples(90_000, 1200, 2400))
    said = "falling behind by 1,200 records/s"
    assert said in ask("status", *of_lake)[1].splitlines()
    trend = last_object(ask("status", *of_lake, "--json")[1])["jobs"][0]["trend"]
    assert trend["says"] == said
    assert trend["trend"] == "falling behind"


def test_no_trend_of_what_is_paused_or_has_stopped(ask: Ask, of_lake: OfLake, topic: Lake) -> None:
    more = {"samples": samples(90_000, 1200, 2400)}
    behind(topic.layout, Backlog("records", 90_000), paused=datetime.now(UTC), **more)
    assert "falling" not in ask("status", *of_lake)[1]
    behind(topic.layout, Backlog("records", 90_000), **more)
    lease(topic.layout, Owner.here(), epoch=3, released=True)
    assert "falling" not in ask("status", *of_lake)[1]


def test_the_ledger_shows_gaps_and_balances(ask: Ask, of_lake: OfLake, topic: Lake) -> None:
    lost(topic, GAP, {**GAP, "partition": 0, "end": None, "reason": "the topic is gone"})
    code, out, _ = ask("ledger", *of_lake)
    assert code == 0
    assert [
        line.rstrip().split(None, 4) for line in out.splitlines() if line.startswith("bids/")
    ] == [
        ["bids/2", "1,000", "to", "2,499", "expired"],
        ["bids/0", "from", "1,000", "on", "the topic is gone"],
    ]
    assert "every event is accounted for" in out
    document = last_object(ask("ledger", *of_lake, "--json")[1])
    assert document["balanced"] is True
    assert document["gaps"][0] == GAP
    assert document["gaps"][1]["end"] is None
    assert "files" not in document


def test_files_have_no_gaps(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    document = last_object(ask("ledger", *of_lake, "--json")[1])
    assert (document["files"], document["gaps"]) == ([], [])
    assert "gaps" not in ask("ledger", *of_lake)[1]


def test_a_topic_has_no_files_log(topic: Lake) -> None:
    declared = load(topic.pipeline.file)
    assert "files" not in {named.schema for named in tables(declared)}
    assert "files" in {named.schema for named in tables(topic.pipeline)}
    assert balance(topic.layout, declared).sources[0].files is None


@pytest.fixture
def no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "nothing"))


def without_publish(text: str) -> str:
    return text.partition("publish:")[0]


@pytest.mark.parametrize("text", [KAFKA, without_publish(KAFKA)], ids=["both", "source"])
def test_a_pipeline_of_kafka_needs_the_jars(text: str, tmp_path: Path, no_jars: None) -> None:
    file = tmp_path / "shop.yml"
    file.write_text(text)
    with pytest.raises(HeadgateError, match="shop needs Spark's Kafka connector") as refused:
        jars_for(load(file))
    assert refused.value.exit_code == 8
    assert "headgate doctor --fetch-jars" in refused.value.remedy


def test_a_pipeline_of_files_needs_none(lake: Lake, no_jars: None) -> None:
    assert jars_for(lake.pipeline) == ()
    sink = KafkaSink("localhost:9092", "finals")
    finals = Publication("finals", "late", "per_minute", None, "kafka", sink)
    with pytest.raises(HeadgateError, match="tiny needs Spark's Kafka connector"):
        jars_for(replace(lake.pipeline, publish={"finals": finals}))


@pytest.mark.parametrize("verb", ["run", "start", "restart"])
def test_a_start_without_jars_is_8(
    ask: Ask, of_lake: OfLake, topic: Lake, no_jars: None, verb: str
) -> None:
    code, _, err = ask(verb, *of_lake)
    assert code == 8
    assert "headgate doctor --fetch-jars" in err
    assert not run_log(topic.layout).exists(), "a process was started to find that out"


@pytest.mark.parametrize("verb", ["run", "start", "restart"])
def test_there_is_no_gap_in_files_to_accept(
    ask: Ask, of_lake: OfLake, lake: Lake, verb: str
) -> None:
    code, _, err = ask(verb, *of_lake, "--accept-gap")
    assert code == 2
    assert "--accept-gap" in err
    assert f"headgate files list {of_lake[0]}" in err


@pytest.mark.parametrize("is_outage", [False, True])
def test_a_start_says_what_the_driver_waits_for_and_leaves_it_running(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    topic: Lake,
    is_outage: bool,
) -> None:
    """Tables with a long backlog catch up before the driver reads its source. Brokers may start
    after the driver, as when a machine starts."""
    launched, stopped = Started(7, "no answer for 30 s", is_outage), list[Layout]()
    monkeypatch.setattr("headgate.supervision.local.launch", lambda *_: launched)
    monkeypatch.setattr("headgate.supervision.local.stop", stopped.append)
    declared = load(topic.pipeline.file)
    assert _start(declared, topic.layout, "lake", lambda _: None, ()) == 7
    said = capsys.readouterr().err
    assert "tiny runs, and does not read yet: no answer for 30 s" in said
    assert ("headgate restart" in said) is is_outage
    assert stopped == []


def test_the_line_of_a_pipeline_that_waits() -> None:
    from headgate.supervision.progress_text import progress_line

    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    progress = JobProgress("tiny", "fused", 1, noon, Layout.of("/lake", "tiny"), updated=noon)
    behind = Backlog("records", 1200, partitions={"bids/0": PartitionBacklog(1200, 34.2)})
    progress.sources = at_b(backlog=behind)
    progress.paused, progress.trouble = noon, "no answer for 12 s"
    said = progress_line(progress, noon)
    assert "backlog 1,200 records 34 s" in said
    assert said.endswith("paused since 12:00:00  no answer for 12 s")
