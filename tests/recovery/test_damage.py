"""A file of bronze is damaged before silver has read it; the driver runs in a process of its
own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.main import answer
from tests.oracle import derive
from tests.support.damage import flip_an_id
from tests.support.drivers import run
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.rounds import in_full
from tests.support.tables import differences, read

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

GOLD = ("bands",)


@in_full
def test_a_page_that_a_batch_has_to_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark reports that a task failed. The driver reports which file is damaged and how to repair
    it. No row of the damaged page reaches silver."""
    landing, root = Landing(tmp_path / "landing"), tmp_path / "root"
    landing.write_all(split(readings(120, seed=13), 3))
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    engine = Engine(spark, pipeline, root)
    engine.list_new()
    engine.ingest(1)
    engine.catch_up()
    savepoint = engine.savepoint()
    engine.ingest(2)  # silver has not processed it
    silver = read(root, "silver/clean")
    (file, *_) = (root / "readings/bronze/raw/data").glob("0-2-*/*.parquet")
    flip_an_id(file)
    refused = run(pipeline.file, root)
    assert refused.code == 5, refused.output
    assert refused.last_line == "DamagedFileError"
    assert f"{file} cannot be read" in refused.output
    assert "headgate repair PIPELINE --dry-run" in refused.output
    assert read(root, "silver/clean") == silver

    place = ["--root", str(root)]
    assert answer(["repair", str(pipeline.file), *place]) == 5
    assert f"{savepoint.id} --reread" in capsys.readouterr().err
    restore = ["savepoint", "restore", str(pipeline.file), savepoint.id, "--reread"]
    assert answer([*restore, *place]) == 0
    Engine(spark, pipeline, root).run_all()
    assert differences(root, derive(landing.records(), rules(gold=GOLD))) == {}
