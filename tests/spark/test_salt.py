"""A salted table folds each key in parts, and holds the same rows as a table without salt."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from tests.oracle import derive
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import GOLD_KEYS, declare, rules
from tests.support.tables import differences

pytestmark = pytest.mark.spark


def test_every_measure_of_every_table_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(400, seed=3), 3))
    declared = declare(tmp_path, landing.folder)
    text = declared.file.read_text()
    declared.file.write_text(
        text.replace("    allowed_lateness", "    salt: 5\n    allowed_lateness")
    )
    pipeline = load(declared.file)
    assert [gold.salt for gold in pipeline.gold.values()] == [5] * len(GOLD_KEYS)
    assert pipeline.digest == declared.digest
    engine = Engine(spark, pipeline, tmp_path / "root")
    engine.list_new()
    for end in (1, 3):
        engine.ingest(end)
        engine.catch_up()
    assert differences(tmp_path / "root", derive(landing.records(), rules())) == {}
