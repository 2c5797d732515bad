"""Two sources of files in one pipeline: one that cannot be read does not hold the other. The tables
of each are compared with the oracle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import exit_codes
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver import source_loop
from headgate.driver.driver import Driver
from headgate.driver.progress import JobProgress
from headgate.driver.task import Task
from headgate.errors import HeadgateError
from headgate.flow.sources.errors import SourceError
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import probe
from tests.oracle import derive
from tests.support.driver_here import sharing
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import files_key, rules
from tests.support.several_readings import declare_several, tables_of
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

GOLD = ("sliding", "bands")
PATIENCE = 120.0  # seconds


def declare_two(folder: Path, raw: str, other: str) -> Pipeline:
    """``raw`` and ``other`` are the keys of the sources with their contents."""
    return declare_several(folder, {"raw": raw, "other": other}, gold=GOLD)


@dataclass
class Two:
    """``raw`` and ``other`` have four files each. The third one of ``other`` was recorded, and then
    rewritten: it cannot be read before ``repair``."""

    spark: SparkSession
    folder: Path
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.raw, self.other = (Landing(self.folder / name) for name in ("in", "other"))
        for landing, seed in ((self.raw, 3), (self.other, 4)):
            landing.write_all(split(readings(60, seed=seed), 4))
        self.pipeline = declare_two(
            self.folder,
            files_key(self.raw.folder, max_files_per_batch=2),
            files_key(self.other.folder, max_files_per_batch=2),
        )
        self.root = self.folder / "root"
        engine = Engine(self.spark, self.pipeline, self.root)
        for loop in engine.sources.values():
            loop.poll(final=True)
            loop.close()
        (self.other.folder / "00003.json").write_bytes(b"{}\n")

    def repair(self) -> None:
        content, modified = self.other.written[2]
        self.other.write("00003.json", content, modified)
        del self.other.written[-1]

    def driver(
        self,
        *,
        once: bool,
        report: Callable[[JobProgress], None] | None = None,
        layers: Sequence[str] = LAYERS,
    ) -> Driver:
        task = Task(self.pipeline, str(self.root), layers, once=once)
        return Driver(task, report or (lambda _: None), self.said.append)

    def differences(self, source: str) -> dict[str, list[str]]:
        landing = self.raw if source == "raw" else self.other
        expected = derive(landing.records(), rules(gold=GOLD))
        return differences(tables_of(self.root, source), expected)


@pytest.fixture
def two(spark: SparkSession, tmp_path: Path) -> Two:
    return Two(spark, tmp_path)


def test_a_run_to_the_end_processes_what_can_be_read_and_names_the_rest(two: Two) -> None:
    with sharing(two.spark), pytest.raises(SourceError) as error:
        two.driver(once=True, layers=["bronze"]).run()
    assert error.value.exit_code == 3
    assert error.value.message.startswith("source other: ")
    assert "00003.json" in error.value.message
    with sharing(two.spark):
        for layer in ("silver", "gold"):
            two.driver(once=True, layers=[layer]).run()
    assert two.differences("raw") == {}
    two.repair()
    with sharing(two.spark):
        two.driver(once=True).run()
    assert two.differences("raw") == two.differences("other") == {}


def test_a_rule_that_stops_one_source_holds_no_other(two: Two) -> None:
    """``other`` is read to its end, but its tables wait for a person."""
    two.repair()
    suite = two.folder / "expectations/levels.yml"
    suite.parent.mkdir()
    suite.write_text("expectations: [{id: none, expect: level is null, action: stop, above: 1 %}]")
    file = two.pipeline.file
    head = "  other_clean:\n"
    file.write_text(file.read_text().replace(head, f"{head}    expectations: levels\n"))
    two.pipeline, two.root = load(file), two.folder / "ruled"
    with sharing(two.spark), pytest.raises(SourceError) as error:
        two.driver(once=True).run()
    assert error.value.exit_code == 3
    assert error.value.message.startswith("source other: silver/other_clean: ")
    assert "'none'" in error.value.message
    assert two.differences("raw") == {}
    (job,) = probe(Layout.of(str(two.root), "readings"), datetime.now(UTC))
    failure = job.sources["other"].failure
    assert failure is not None
    assert "'none'" in failure.reason
    suite.write_text("expectations: [{id: none, expect: level < 1e6, action: stop, above: 1 %}]")
    two.pipeline = load(file)
    with sharing(two.spark):
        two.driver(once=True).run()
    assert two.differences("raw") == two.differences("other") == {}


def test_a_damaged_table_of_one_source_holds_no_other(two: Two) -> None:
    """``other`` has silver files that gold cannot read; they come back later."""
    two.repair()
    with sharing(two.spark):
        for layer in ("bronze", "silver"):
            two.driver(once=True, layers=[layer]).run()
    files = [*(two.root / "readings/silver/other_strong").rglob("*.parquet")]
    contents = [file.read_bytes() for file in files]
    for file in files:
        file.write_bytes(b"damaged")
    with sharing(two.spark), pytest.raises(HeadgateError, match=r"source other: .*\.parquet") as e:
        two.driver(once=True, layers=["gold"]).run()
    assert e.value.exit_code == exit_codes.LOG_GAP
    assert "headgate repair" in (e.value.remedy or "")
    assert two.differences("raw") == {}
    shown = tables_of(two.root, "other")
    assert read(shown, "gold/bands"), "a table of the source that reads another silver table"
    assert not read(shown, "gold/sliding")
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    with sharing(two.spark):
        two.driver(once=True, layers=["gold"]).run()
    assert two.differences("raw") == two.differences("other") == {}


def test_a_source_that_does_not_answer_holds_no_other(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "in")
    landing.write_all(split(readings(60, seed=3), 4))
    away = "kafka: {servers: 'localhost:1', topic: orders, unreachable_after: 1 second}"
    task = Task(
        declare_two(tmp_path, files_key(landing.folder), away), str(tmp_path / "root"), once=True
    )
    told = list[str]()
    with sharing(spark), pytest.raises(SourceError, match="source other: .*localhost:1") as error:
        Driver(task, tell=told.append).run()
    assert error.value.exit_code == 3
    shown = tables_of(tmp_path / "root", "raw")
    assert differences(shown, derive(landing.records(), rules(gold=GOLD))) == {}


def test_a_source_that_is_repaired_goes_on_beside_the_other(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_loop, "HELD_FOR", 1.0)
    seen, ended = list[JobProgress](), list[BaseException | None]()
    driver = two.driver(once=False, report=seen.append)

    def run() -> None:
        try:
            driver.run()
            ended.append(None)
        except HeadgateError as error:
            ended.append(error)

    def until(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, (two.said, ended)
            assert not ended
            time.sleep(0.1)

    def backlog(source: str) -> int | None:
        behind = seen[-1].sources[source].backlog if seen else None
        return None if behind is None else behind.count

    with sharing(two.spark):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            until(lambda: bool(seen) and seen[-1].sources["other"].failure is not None)
            until(lambda: backlog("raw") == 0)
            failure = seen[-1].sources["other"].failure
            assert failure is not None
            assert "00003.json" in failure.reason
            more = split(readings(20, seed=5), 2)
            for landing in (two.raw, two.other):
                landing.write_all(more, first=5)
            until(lambda: seen[-1].sources["raw"].n == 3 and backlog("raw") == 0)
            assert seen[-1].sources["other"].failure is not None
            two.repair()
            until(lambda: seen[-1].sources["other"].failure is None and backlog("other") == 0)
        finally:
            driver.stop()
            thread.join(PATIENCE)
    assert ended == [None]
    assert two.differences("raw") == two.differences("other") == {}
