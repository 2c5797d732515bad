"""A Delta table as plain Spark with delta-spark reads it: ``… spark_reader TABLE TARGET.parquet``.

A process of its own: the tests' session has no Delta jars, as the engine needs none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.jars import cached_jars
from tests.support.drivers import REPOSITORY


def with_spark(table: Path, folder: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table."""
    target = folder / f"{table.name}.parquet"
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "pipelines")])
    subprocess.run(
        [sys.executable, "-m", "tests.support.spark_reader", str(table), str(target)],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=REPOSITORY,
        check=True,
        timeout=240,
        capture_output=True,
    )
    rows: list[dict[str, Any]] = pq.read_table(target).to_pylist()
    return rows


def session(scratch: Path) -> SparkSession:
    """What an analyst has: Spark with the extension of Delta Lake."""
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, cached_jars())))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch))
    )
    return builder.getOrCreate()


def main(table: str, target: str) -> None:
    rows = session(Path(target).parent).read.format("delta").load(table).toArrow()
    pq.write_table(rows, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
