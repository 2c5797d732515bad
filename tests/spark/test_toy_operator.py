"""An operator of another package in the rest of a pipeline: status, final periods, upgrade. No
module of the engine names it. Its rows are proved with those of all operators
(test_operator_contract.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.task import RebuildRequest
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger.by_id import by_id
from headgate.insight.status.checkpoints import checkpoints
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.tables import read, state
from tests.support.toys import toys

pytestmark = pytest.mark.spark

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


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


def declare(folder: Path, landing: Landing) -> Pipeline:
    file = folder / "readings.yml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(DECLARATION.format(landing=landing.folder))
    return load(file)


def test_its_life(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(200, seed=7), 1))
    pipeline = declare(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    (window, *_) = checkpoints(engine.layout, pipeline).windows
    assert window.span[1] - window.span[0] == timedelta(minutes=7)
    watermark = state(engine.root, "gold/per_slot")["watermark"]
    assert final_up_to(engine.layout, pipeline, "per_slot") == datetime.fromtimestamp(
        watermark / 1e6, UTC
    )
    engine.drain()
    last = max(row["slot_end"] for row in read(engine.root, "gold/per_slot"))
    assert final_up_to(engine.layout, pipeline, "per_slot") == last

    pipeline.file.write_text(pipeline.text.replace("7 minutes", "11 minutes"))
    changed = load(pipeline.file)
    with pytest.raises(DefinitionChangedError):
        Engine(spark, changed, engine.root)
    engine = Engine(spark, changed, engine.root, anew=RebuildRequest(changed=True))
    engine.catch_up()
    rows = read(engine.root, "gold/per_slot")
    assert {row["slot_end"] - row["slot_start"] for row in rows} == {timedelta(minutes=11)}
    assert all(row["final"] for row in rows), "the drain is carried out again"
    assert by_id(engine.layout, engine.pipeline).holds
