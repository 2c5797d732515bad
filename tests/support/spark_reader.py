"""Reads a Delta table with plain Spark and delta-spark: ``… spark_reader TABLE TARGET.parquet``, or
``TABLE FOLDER COLUMN`` to read it again and again.

It is a process of its own: the tests' session has no Delta jars, because the engine needs none.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.machine.jars import cached_jars, class_archive, java
from tests.support.drivers import REPOSITORY
from tests.support.polling import PAUSE, Values


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


@contextmanager
def polled_by_spark(table: Path, column: str, folder: Path) -> Iterator[list[Values]]:
    """The values of a column that Spark sees while it polls a table."""
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "pipelines")])
    seen: list[Values] = []
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.spark_reader", str(table), str(folder), column],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = process.stdout
    reading = threading.Thread(target=lambda: _each(lines, seen), daemon=True)
    reading.start()
    try:
        yield seen
    finally:
        process.stdin.close()  # this ends the process
        process.wait(timeout=240)
        reading.join()
    assert process.returncode == 0


def _each(lines: Iterable[str], seen: list[Values]) -> None:
    for line in lines:
        seen.append(tuple(json.loads(line)))


def session(scratch: Path) -> SparkSession:
    """The session of an analyst: Spark with the extension of Delta Lake."""
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, cached_jars())))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # A log of a few entries does not need fifty tasks.
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.extraJavaOptions", f"{java.options()} {class_archive.jvm_options()}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch))
        .getOrCreate()
    )


def main(table: str, target: str) -> None:
    pq.write_table(session(Path(target).parent).read.format("delta").load(table).toArrow(), target)


def poll(table: str, folder: str, column: str) -> None:
    """Print the values of a column again and again until standard input ends."""
    spark = session(Path(folder))
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        rows = spark.read.format("delta").load(table).select(column).collect()
        print(json.dumps(sorted(row[0] for row in rows)), flush=True)


if __name__ == "__main__":
    (poll if sys.argv[3:] else main)(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
