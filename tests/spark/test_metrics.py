"""Metrics of real tables, while they are written, published, merged, restored and damaged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.kinds import GOLD
from headgate.declaration.load import load
from headgate.insight.ledger import balance
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms, Sample
from headgate.insight.status.checkpoints import checkpoints
from headgate.lake.tables.log import entry_path, newest_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import commit_time
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.gated import TABLE, GatedProject
from tests.support.landing import ARRIVED, Landing, split
from tests.support.maintained import compacted, trimmed
from tests.support.prepared import Prepared
from tests.support.readings import declare
from tests.support.toys import toys
from tests.unit.insight.metrics.conftest import Clock, Values, value, values

pytestmark = pytest.mark.spark

FILES, PROCESSED = 6, 3
TABLE_OF_GOLD = "gold/sliding"


class Watching:
    """A reading of the metrics that is due at each call."""

    def __init__(self, engine: Engine) -> None:
        self.clock, self.histograms, self._engine = Clock(), Histograms(), engine
        self._reading = PipelineReading(
            engine.pipeline, engine.layout, self.histograms, monotonic=self.clock
        )

    def __call__(self) -> tuple[Sample, ...]:
        self.clock.now += 100_000
        return self._reading.refresh(datetime.now(UTC))

    def observations(self, metric: str) -> dict[str, float]:
        """The number of observations by the last label."""
        return {
            list(sample.labels.values())[-1]: sample.value
            for family in self.histograms.collect()
            for sample in family.samples
            if sample.name == f"headgate_{metric}_count"
        }


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Half of the files are in the tables; final rows go to a file."""
    folder = tmp_path_factory.mktemp("begun")
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(300, seed=5), FILES))
    with toys():
        declared = declare(folder, landing.folder, gold=("sliding",), silver=("clean",))
        publish = (
            f"publish:\n  finals: {{from: gold.sliding, jsonl: {{path: {folder}/out.jsonl}}}}\n"
        )
        declared.file.write_text(declared.text + publish)
        engine = Engine(spark, load(declared.file), folder / "root")
        engine.list_new()
        process(engine, *range(1, PROCESSED + 1))
        return Prepared(engine)


def process(engine: Engine, *ends: int) -> None:
    for end in ends:
        engine.ingest(end)
        engine.catch_up()


@pytest.fixture
def engine(begun: Prepared, tmp_path: Path) -> Engine:
    return begun.copy(tmp_path)


def accounted(engine: Engine) -> Values:
    """The counts of the ledger for silver."""
    return {
        ("raw", f"silver/{silver.table}", name): float(getattr(silver, name))
        for silver in balance(engine.layout, engine.pipeline).silver
        for name in OUTCOMES
    }


OUTCOMES = ("silver", "quarantined", "rejected", "filtered", "duplicate")


def unreadable(samples: tuple[Sample, ...]) -> list[str]:
    return [labels[0] for labels, ok in values(samples, "readable").items() if not ok]


def test_counts_durations_and_state_of_a_stream(engine: Engine) -> None:
    watch = Watching(engine)
    assert values(watch(), "records_total") == accounted(engine)
    for end in range(PROCESSED + 1, FILES + 1):
        process(engine, end)
        found = watch()
        assert values(found, "records_total") == accounted(engine)
        assert set(values(found, "ledger_difference_records").values()) == {0}
        assert unreadable(found) == []
    batches = FILES - PROCESSED
    stages = watch.observations("batch_duration_seconds")
    assert stages == {
        "bronze": batches,
        "silver": 2 * batches,
        "gold": batches,
        "publish": 0,
    }, "one for each table"
    assert watch.observations("arrival_to_gold_seconds") == {TABLE_OF_GOLD: batches}
    windows = checkpoints(engine.layout, engine.pipeline).windows
    assert value(found, "open_windows", TABLE_OF_GOLD) == len(windows) > 0
    assert value(found, "open_rows", TABLE_OF_GOLD) == sum(window.rows for window in windows)
    assert value(found, "state_bytes", TABLE_OF_GOLD) > 0
    assert value(found, "stored_bytes_total", "bronze/raw") > 0


def test_bronze_has_when_its_oldest_record_arrived(engine: Engine) -> None:
    began = commit_time(datetime.now(UTC))
    process(engine, 4)
    commit = newest_commit(engine.layout.storage.at("bronze/raw"))
    assert commit is not None
    assert commit.written_at is not None
    assert BronzePayload.of(commit.state).arrived == commit_time(ARRIVED)
    assert began - 1000 <= commit.written_at <= commit_time(datetime.now(UTC))
    engine.start()
    fence = newest_commit(engine.layout.storage.at("bronze/raw"))
    assert fence is not None
    assert BronzePayload.of(fence.state).arrived is None, "a fence has no records"


def test_what_waits_for_a_sink_is_counted_until_it_is_sent(engine: Engine) -> None:
    engine.operate("drain")
    engine.catch_up()
    watch = Watching(engine)
    waiting = value(watch(), "publication_lag_commits", "finals")
    assert waiting >= 1
    assert value(watch(), "publication_lag_seconds", "finals") > 0
    (stage,) = engine.runtime.publications
    stage.catch_up(engine.clock())
    found = watch()
    assert value(found, "publication_lag_commits", "finals") == 0
    assert value(found, "publication_lag_seconds", "finals") == 0
    assert watch.observations("batch_duration_seconds")["publish"] == 1
    assert value(Watching(engine)(), "publication_lag_commits", "finals") == 0


def test_a_restore_is_followed(engine: Engine) -> None:
    watch, before = Watching(engine), accounted(engine)
    savepoint = engine.savepoint()
    assert value(watch(), "savepoints") == 1
    process(engine, 4, 5)
    assert values(watch(), "records_total") == accounted(engine) != before
    engine.restore(savepoint)
    assert unreadable(watch()) == []
    engine.start()
    found = watch()
    assert values(found, "records_total") == accounted(engine)
    assert value(found, "ledger_differences") == 0
    process(engine, 4 if engine.bronze.state.n == PROCESSED else FILES)
    found = watch()
    assert unreadable(found) == []
    assert values(found, "records_total") == accounted(engine)


def test_tables_that_are_merged_and_trimmed_are_followed(engine: Engine) -> None:
    watch = Watching(engine)
    first = values(watch(), "records_total")
    compacted(engine)
    assert values(watch(), "records_total") == first
    trimmed(engine)
    assert values(watch(), "records_total") == first
    process(engine, 4)
    found = watch()
    assert values(found, "records_total") == accounted(engine) != first
    assert unreadable(found) == []


def test_damage_is_told_and_goes_away_with_it(engine: Engine) -> None:
    watch = Watching(engine)
    watch()
    process(engine, 4)
    gold = engine.layout.storage.at(TABLE_OF_GOLD)
    commit = newest_commit(gold)
    assert commit is not None
    whole = gold.read(entry_path(commit.version))
    gold.write(entry_path(commit.version), whole.replace(b'"folded"', b'"f0lded"'))
    assert set(unreadable(watch())) >= {"tables", "ledger", "state"}
    gold.write(entry_path(commit.version), whole)
    found = watch()
    assert unreadable(found) == []
    assert values(found, "records_total") == accounted(engine)


def test_a_gate_that_holds_is_told(spark: SparkSession, tmp_path: Path) -> None:
    project = GatedProject(tmp_path, spark)
    project.deliver("good")
    engine = project.catch_up(project.engine())
    watch, path = Watching(engine), GOLD.path(TABLE)
    assert value(watch(), "gate_held", path) == 0
    project.deliver("bad")
    project.catch_up(engine)
    found = watch()
    assert value(found, "gate_held", path) == 1
    assert value(found, "gate_held_timestamp_seconds", path) > 0
    assert value(found, "lag_batches", path) == 1
    project.release(engine)
    engine.catch_up()
    assert value(watch(), "gate_held", path) == 0
