"""The demo's project and its producer."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.declaration import example
from headgate.cli.demo.screen import next_commands, why_late
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.setup.demo import project
from headgate.setup.demo.feeding import FIRST, SPAN, Feeder, into_folder, slices
from headgate.setup.demo.generator import TABLE
from headgate.setup.demo.topic import TOPIC, key_of
from tests.support.declared import files_of, kafka_of

START = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize("events", [1, FIRST, FIRST + 1, 20_000])
def test_all_events_in_slices_that_end_in_time(events: int) -> None:
    parts = list(slices(events, 7, START))
    assert sum(len(p.lines) for p in parts) == events
    assert len(parts[0].lines) == min(events, FIRST)
    assert parts[-1].now == START + SPAN
    assert [p.now for p in parts] == sorted(p.now for p in parts)


def wait_for(folder: Path, files: int) -> int:
    deadline = time.monotonic() + 10
    while len(list(folder.glob("*.json"))) < files and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)
    return len(list(folder.glob("*.json")))


@pytest.mark.slow
def test_the_producer_stays_one_file_ahead(tmp_path: Path) -> None:
    feeder = Feeder(into_folder(tmp_path), 12_000, 7)
    feeder.start()
    assert wait_for(tmp_path, 1) == 1
    assert not feeder.ingested(FIRST)
    assert wait_for(tmp_path, 3) == 3
    assert feeder.ingested(12_000)
    feeder.join(timeout=30)
    written = sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*.json"))
    assert written == 12_000


def test_files_are_as_old_as_their_bids(tmp_path: Path) -> None:
    feeder = Feeder(into_folder(tmp_path), 100, 7)
    feeder.run()
    (file,) = tmp_path.glob("*.json")
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    assert abs(datetime.now(UTC) - written) < timedelta(seconds=30)


def test_a_slice_that_cannot_be_delivered_ends_the_demo() -> None:
    failures: list[str] = []

    def deliver(_: int, __: object) -> None:
        raise OSError("full")

    feeder = Feeder(deliver, 100, 7, lambda: failures.append("gave up"))
    feeder.run()
    assert str(feeder.failure) == "full"
    assert failures == ["gave up"]


def test_bids_of_an_auction_have_its_key() -> None:
    (part,) = slices(2000, 7, START)
    keys = {line: key_of(line) for line in part.lines}
    whole = [line for line in part.lines if line.startswith(b'{"event_id"')]
    assert all(b'"auction":%b,' % key in line for line, key in keys.items() if key)
    assert sum(key is None for key in keys.values()) < 20
    assert len(set(keys.values())) > 100
    assert len(whole) > 1900


def test_the_project_of_a_topic_reads_its_own_broker(tmp_path: Path) -> None:
    declared = load(project.make(tmp_path, example("auctions_kafka"), "127.0.0.1:7"))
    assert (kafka_of(declared).servers, kafka_of(declared).topic) == ("127.0.0.1:7", TOPIC)
    assert not project.landing(tmp_path).exists()


@pytest.mark.parametrize("name", ["auctions", "checkout"])
def test_both_examples_are_the_same_pipeline(name: str) -> None:
    files, kafka = load(example(name)), load(example(f"{name}_kafka"))
    assert (kafka.silver, kafka.gold) == (files.silver, files.gold)
    records = [[(n, s.record) for n, s in each.sources.items()] for each in (files, kafka)]
    assert records[0] == records[1]


def test_the_project_reads_its_own_landing_folder_only(tmp_path: Path) -> None:
    declared = load(project.make(tmp_path, example("auctions")))
    files = files_of(declared)
    assert (files.path, files.settle) == (str(project.landing(tmp_path)), timedelta(0))
    assert declared.digest == load(example("auctions")).digest


def test_a_demo_never_runs_into_another(tmp_path: Path) -> None:
    project.make(tmp_path, example("auctions"))
    with pytest.raises(HeadgateError, match="holds a project already") as refused:
        project.make(tmp_path, example("auctions"))
    assert "rm " not in refused.value.remedy, "it may be a person's own project"


def test_why_a_bid_was_late() -> None:
    end = START + timedelta(minutes=1)
    row = ("bid-1", START, START, end, end + timedelta(seconds=70), 60.0)
    said = why_late(row, timedelta(seconds=10))
    assert "watermark stood at 2026-05-04 12:02:10Z" in said
    assert "60 s after" in said
    assert "10 s of allowed lateness" in said


def test_what_to_type_next_is_about_this_demo(tmp_path: Path) -> None:
    commands = next_commands(tmp_path, tmp_path / "pipelines" / "auctions.yml")
    assert sum(f"--root {tmp_path}/lake" in command for command in commands) == 7
    spaced = next_commands(Path("/a b"), Path("/a b/c.yml"))
    assert all("'/a b/c.yml'" in command for command in spaced[:-1])


def test_after_a_demo_with_a_broker_one_can_have_it_again(tmp_path: Path) -> None:
    file = tmp_path / "pipelines" / "auctions_kafka.yml"
    commands = next_commands(tmp_path, file, "127.0.0.1:4711")
    again, *_ = [c for c in commands if "kafka up" in c]
    assert again.endswith(f"kafka up --port 4711 --root {tmp_path}/lake")
    assert not any("landing" in command for command in commands)


def test_the_screen_shows_a_bar_then_a_line_then_gold(tmp_path: Path) -> None:
    from rich.console import Console

    from headgate.cli.demo.screen import _Filling
    from headgate.cli.output import grid
    from headgate.driver.progress import JobProgress
    from headgate.lake.control.driver_reports import SourceProgress
    from headgate.lake.storage.layout import Layout

    declared = load(project.make(tmp_path, example("auctions")))
    layout = Layout.of(str(tmp_path), "auctions")
    shown = _Filling(declared, layout, 100)
    out = Console(width=200, record=True, file=(tmp_path / "screen").open("w"))
    out.print(shown.render())
    totals = {"bronze/bids": {"read": 50}}
    progress = JobProgress(
        "auctions",
        "fused",
        1,
        START,
        layout,
        rows=50,
        seconds=10.0,
        totals=totals,
        sources={"bids": SourceProgress(2)},
    )
    shown.take(progress)
    shown._gold = grid("gold.bids_per_minute", "window_start", "auction", "bids")
    out.print(shown.render())
    lines = [line for line in out.export_text().splitlines() if line.strip()]
    assert lines[0].startswith("starting Spark")
    assert set(lines[1].strip()) <= set("━╸╺ ")
    assert "batch 2  read 50" in lines[2]
    assert lines[3].startswith("gold.bids_per_minute")
    narrow = Console(width=40, record=True, file=(tmp_path / "narrow").open("w"))
    narrow.print(shown.render())
    lines = [line.rstrip() for line in narrow.export_text().splitlines() if line.strip()]
    assert lines[2].startswith("backlog -  watermark -")


def test_a_demo_without_great_expectations_has_no_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project.make(tmp_path / "with", example("auctions"))
    assert load(made).gold[TABLE].suite is not None
    monkeypatch.setattr(project, "has_gates", lambda: False)
    made = project.make(tmp_path / "without", example("auctions"))
    assert load(made).gold[TABLE].suite is None
