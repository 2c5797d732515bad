"""How fresh tables are: commits decide, not which driver runs or how often it starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.history.savepoints.resets import ResetTarget, reset_table
from headgate.insight.status.freshness import Freshness, SourceFreshness, freshness
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    return Lake(tmp_path / "lake", load(file))


def table(lake: Lake, path: str) -> Table:
    return Table(lake.layout.storage, path, pipeline="tiny")


def batch(lake: Lake, path: str, at: datetime, *, changed: bool, watermark: int = 0) -> None:
    made = table(lake, path)
    held = made.refresh()
    clock = commit_time(NOON) + watermark
    payload = GoldPayload(clock) if path.startswith("gold/") else BronzePayload(watermark=clock)
    state = held.advanced_to(held.n + 1, at, payload)
    made.commit(state.counting({}, changed=changed))


def fresh(lake: Lake) -> Freshness:
    return freshness(lake.layout, lake.pipeline)


def events(
    clock: datetime | None = None, arrived: datetime | None = None
) -> dict[str, SourceFreshness]:
    return {"events": SourceFreshness(clock, arrived)}


def test_tables_that_nothing_came_to_are_not_known(lake: Lake, tmp_path: Path) -> None:
    assert fresh(lake) == Freshness({"per_minute": None}, events())
    assert fresh(lake).changed is None
    nowhere = freshness(lake.layout.of(str(tmp_path), "nowhere"), lake.pipeline)
    assert nowhere == Freshness({"per_minute": None}, events())


def test_only_what_brings_something_new_moves_them(lake: Lake) -> None:
    for path in ("bronze/events", "gold/per_minute"):
        batch(lake, path, NOON, changed=True)
        batch(lake, path, LATER, changed=False)
        held = table(lake, path).refresh()
        table(lake, path).commit(replace(held.held("maintenance", 0), at=commit_time(LATER)))
    assert fresh(lake) == Freshness({"per_minute": NOON}, events(NOON, NOON))


def test_drivers_that_start_again_and_again_make_nothing_younger(lake: Lake) -> None:
    for path in ("bronze/events", "gold/per_minute"):
        batch(lake, path, NOON, changed=True)
    ages = []
    for epoch in range(1, 4):
        for path in ("bronze/events", "gold/per_minute"):
            table(lake, path).fence(epoch)
        ages.append(fresh(lake).document(NOON + timedelta(minutes=20 * epoch)))
    assert [age["gold_changed"]["seconds"] for age in ages] == [1200, 2400, 3600]
    assert [age["last_record"]["seconds"] for age in ages] == [1200, 2400, 3600]
    assert [age["watermark"]["seconds"] for age in ages] == [1200, 2400, 3600]


def test_a_table_that_goes_back_is_as_it_was(lake: Lake) -> None:
    gold = table(lake, "gold/per_minute")
    batch(lake, gold.name, NOON, changed=True)
    then = ResetTarget(gold.refresh().data_commit, gold.refresh().files)
    batch(lake, gold.name, LATER, changed=True)
    reset_table(gold, then, 1, LATER + timedelta(hours=1))
    assert fresh(lake).changed == NOON


def test_a_table_that_is_emptied_to_be_built_anew_brings_nothing_new(lake: Lake) -> None:
    for path in ("bronze/events", "gold/per_minute"):
        batch(lake, path, NOON, changed=True)
    reset_table(table(lake, "gold/per_minute"), ResetTarget(), 1, LATER)
    reset_table(table(lake, "bronze/events"), ResetTarget(), 1, LATER)
    assert fresh(lake) == Freshness({"per_minute": NOON}, events(arrived=NOON))


@pytest.mark.slow
def test_the_last_commit_is_found_behind_checkpoints_and_those_of_others(lake: Lake) -> None:
    for minute in range(102):
        batch(lake, "bronze/events", NOON + timedelta(minutes=minute), changed=True)
    bronze = table(lake, "bronze/events")
    bronze.refresh()
    assert bronze.storage.exists("_delta_log/_last_checkpoint")
    DeltaTable(bronze.storage.uri()).alter.set_table_properties({"delta.checkpointInterval": "50"})
    assert fresh(lake).sources["events"].arrived == NOON + timedelta(minutes=101)


def test_gold_changed_when_its_newest_table_changed() -> None:
    assert Freshness({"a": NOON, "b": LATER, "c": None}).changed == LATER


@pytest.mark.parametrize("step", ["30 s", "auto"])
def test_results_of_a_table_with_steps_are_as_old_as_the_oldest_batch_that_they_lack(
    lake: Lake, step: str
) -> None:
    file = Path(lake.pipeline.file)
    file.write_text(f"{file.read_text()}    step: {step}\n")
    lake.pipeline = load(file)

    def lacks_since() -> datetime | None:
        return fresh(lake).steps["per_minute"].lacks_since

    assert lacks_since() is None
    starts = [NOON + timedelta(seconds=10 * n) for n in range(4)]
    for start in starts:
        batch(lake, "bronze/events", start, changed=True)
    assert lacks_since() == starts[0]
    table(lake, "bronze/events").fence(3)
    for n in (1, 2):
        batch(lake, "gold/per_minute", LATER, changed=True)
        assert lacks_since() == starts[n]
    told = fresh(lake).document(LATER)["steps"]["per_minute"]
    said = "auto" if step == "auto" else "every 30 seconds"
    assert told == {
        "step": said,
        "lacks_since": {"at": starts[2].isoformat(), "seconds": 3600 - 20},
    }
    for _ in range(2):
        batch(lake, "gold/per_minute", LATER, changed=True)
    assert lacks_since() is None
    assert fresh(lake).document(LATER)["steps"]["per_minute"]["lacks_since"] is None


def test_bronze_that_has_gone_back_is_read_as_it_is_now(lake: Lake) -> None:
    file = Path(lake.pipeline.file)
    file.write_text(f"{file.read_text()}    step: 1 minute\n")
    lake.pipeline = load(file)
    bronze = table(lake, "bronze/events")
    for seconds in range(3):
        then = ResetTarget(bronze.refresh().data_commit, bronze.refresh().files)
        batch(lake, bronze.name, NOON + timedelta(seconds=seconds), changed=True)
    batch(lake, "gold/per_minute", NOON, changed=True)
    reset_table(bronze, then, 1, LATER)
    assert fresh(lake).steps["per_minute"].lacks_since == NOON + timedelta(seconds=1)
    batch(lake, "gold/per_minute", NOON, changed=True)
    assert fresh(lake).steps["per_minute"].lacks_since is None
    batch(lake, "bronze/events", LATER, changed=True)
    assert fresh(lake).steps["per_minute"].lacks_since == LATER
