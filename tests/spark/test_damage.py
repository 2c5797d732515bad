"""A byte that changes on disk is noticed where it is read, not carried on into the next table."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.damage import flip_an_id
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, lines
from tests.support.readings import declare
from tests.support.tables import read

pytestmark = pytest.mark.spark


def test_a_changed_byte_of_bronze_never_reaches_silver(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write("1.json", lines(readings(40, seed=1)))
    engine = Engine(spark, declare(tmp_path, landing.folder), tmp_path / "root")
    engine.list_new()
    engine.absorb()
    files = list(engine.root.glob("*/bronze/raw/data/*/*.parquet"))
    assert files
    assert not list(engine.root.rglob("data/*/.*.crc"))
    for file in files:
        flip_an_id(file)

    with pytest.raises(Py4JJavaError, match="CRC"):
        engine.catch_up()

    assert read(engine.root, "silver/clean") == []
