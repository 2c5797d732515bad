"""A byte that changes on disk is noticed where it is read, not carried on into the next table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, lines
from tests.support.readings import declare
from tests.support.tables import read

pytestmark = pytest.mark.spark


def flip_last_byte_of_ids(file: Path) -> None:
    """The page stays readable: only its checksum tells that an id is another one now."""
    group = pq.read_metadata(file).row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    ids = next(c for c in columns if c.path_in_schema == "event_id")
    content = bytearray(file.read_bytes())
    content[ids.data_page_offset + ids.total_compressed_size - 1] ^= 1
    file.write_bytes(content)


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
        flip_last_byte_of_ids(file)

    with pytest.raises(Py4JJavaError, match="CRC"):
        engine.catch_up()

    assert read(engine.root, "silver/clean") == []
