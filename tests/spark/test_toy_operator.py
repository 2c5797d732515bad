"""An operator of another package works at every stage of a pipeline's life: plan, batches, errors
in the middle of batches, savepoint, restore, drain, upgrade, ledger. No module of the engine names
it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.task import RebuildRequest
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.insight.status.checkpoints import checkpoints
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import catch_up_despite, failing
from tests.support.landing import Landing, split
from tests.support.tables import Row, read, state
from tests.support.toys import toys

pytestmark = pytest.mark.spark

ORIGIN = datetime(2026, 3, 1, 0, 3, 20, tzinfo=UTC)
DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
  per_slot:
    from: clean
    slots: {{every: 7 minutes, origin: "2026-03-01T00:03:20"}}
    by: [site]
    measures: {{events: count(*), total: sum(level)}}
    columns: {{mean: total / events}}
"""
FILES = 5
PLACES = ("gold.staged", "gold.committed", "late.staged", "late.committed")


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


def declare(folder: Path, landing: Landing) -> Pipeline:
    file = folder / "readings.yml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(DECLARATION.format(landing=landing.folder))
    return load(file)


def slot_of(time: datetime, every: timedelta) -> tuple[int, datetime]:
    number = (time - ORIGIN) // every
    return number, ORIGIN + (number + 1) * every


def expected(engine: Engine, every: timedelta, drained: datetime | None) -> tuple[Any, Any]:
    """The rows of gold and late for the rows of silver, computed a second time in plain Python.
    ``drained``: the slots that end at or before this time were closed after the last row."""
    watermark: datetime | None = None
    gold: dict[tuple[Any, ...], list[Any]] = defaultdict(lambda: [0, 0, False])
    late: set[tuple[Any, ...]] = set()
    said = state(engine.root, "gold/per_slot")["watermark"]
    watermark = None if said is None else datetime.fromtimestamp(said / 1e6, UTC)
    for row in read(engine.root, "silver/clean"):
        number, end = slot_of(row["_event_time"], every)
        if row["_clock"] is not None and row["_clock"] >= end:
            late.add((row["_partition"], row["_offset"], number))
            continue
        kept = gold[number, row["site"]]
        kept[0] += 1
        kept[1] += row["level"] or 0
        kept[2] = any(time is not None and end <= time for time in (watermark, drained))
    return {key: tuple(kept) for key, kept in gold.items()}, late


def actual(engine: Engine, every: timedelta) -> tuple[Any, Any]:
    gold = {}
    for row in read(engine.root, "gold/per_slot"):
        assert (row["slot"], row["slot_end"]) == slot_of(row["slot_start"], every)
        gold[row["slot"], row["site"]] = (row["events"], row["total"] or 0, row["final"])
    late = read(engine.root, "late/per_slot")
    assert all(row["late_seconds"] >= 0 for row in late)
    return gold, {(row["_partition"], row["_offset"], row["slot"]) for row in late}


def check(engine: Engine, every: timedelta = timedelta(minutes=7), drained: Any = None) -> None:
    gold, late = expected(engine, every, drained)
    assert gold
    assert late
    assert actual(engine, every) == (gold, late)
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds


def rows(engine: Engine) -> list[Row]:
    tables = ("gold/per_slot", "late/per_slot")
    found = [row for table in tables for row in read(engine.root, table)]
    for row in found:
        row.pop("updated_at", None)
    return sorted(found, key=str)


def test_its_life(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(300, seed=7), FILES))
    pipeline = declare(tmp_path, landing)
    assert "  slots    every 7 minutes from 2026-03-01T00:03:20+00:00" in describe(pipeline)
    engine = Engine(spark, pipeline, tmp_path / "root")
    catch_up_despite(engine, PLACES)
    check(engine)
    savepoint = engine.savepoint()
    (window, *_) = checkpoints(engine.layout, pipeline).windows
    assert window.span[1] - window.span[0] == timedelta(minutes=7)

    engine.ingest(FILES)
    engine.catch_up()
    check(engine)
    watermark = state(engine.root, "gold/per_slot")["watermark"]
    assert final_up_to(engine.layout, pipeline, "per_slot") == datetime.fromtimestamp(
        watermark / 1e6, UTC
    )
    before = rows(engine)

    engine.restore(savepoint)
    engine = Engine(spark, pipeline, engine.root)
    engine.list_new()
    engine.ingest()
    engine.catch_up()
    assert rows(engine) == before
    check(engine)

    with failing("operation.staged"):
        engine.drain()
    engine.start().catch_up()
    last = max(row["slot_end"] for row in read(engine.root, "gold/per_slot"))
    check(engine, drained=last)
    assert final_up_to(engine.layout, pipeline, "per_slot") == last

    pipeline.file.write_text(pipeline.text.replace("7 minutes", "11 minutes"))
    changed = load(pipeline.file)
    with pytest.raises(DefinitionChangedError):
        Engine(spark, changed, engine.root)
    engine = Engine(spark, changed, engine.root, anew=RebuildRequest(changed=True))
    engine.catch_up()
    last = max(row["slot_end"] for row in read(engine.root, "gold/per_slot"))
    check(engine, timedelta(minutes=11), drained=last)
