"""A bronze stage beside other threads of its process, and beside another driver."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.sources.micro_batches import BatchEnd, SourceBatch
from headgate.flow.sources.records import PartedRecords, RecordsInMemory
from headgate.lake.storage.files import Storage
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from headgate.lake.tables.record_shape import record_schema
from headgate.lake.tables.table import Table
from tests.support.declared import source_of
from tests.support.readings import declare

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = 30.0  # seconds

pytestmark = pytest.mark.spark


def table_in(folder: Path) -> Table:
    return Table(Storage(str(folder / "root")), "bronze/raw", pipeline="readings")


def stage_over(
    spark: SparkSession, table: Table, folder: Path, commit_lock: Any = None
) -> BronzeStage:
    source = source_of(declare(folder, folder, gold=("bands",)))
    stage = BronzeStage(spark, table, source, commit_lock)
    stage.shape.create("digest")
    table.fence(1)
    return stage


def batch(**more: Any) -> SourceBatch:
    value = b'{"id": "a", "at": "2026-03-01T11:59:00Z"}'
    row = {"value": value, "partition": 0, "offset": 1, "ingested_at": NOON, "seen_at": NOON}
    rows = pa.Table.from_pylist([row], record_schema("file"))
    return SourceBatch(PartedRecords([RecordsInMemory(rows)]), BatchEnd({"sequence": 1}), **more)


def test_readers_of_this_process_do_not_move_the_version_that_a_batch_continues(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Otherwise a driver that was taken over could commit a last batch."""
    table = table_in(tmp_path)
    stage = stage_over(spark, table, tmp_path)

    def take_over() -> None:
        table_in(tmp_path).fence(2)
        with pytest.raises(FencedError):
            table.refresh()

    with pytest.raises(CommitRefusedError):
        stage.ingest(batch(verify=take_over), NOON)
    assert table_in(tmp_path).refresh().n == 0


def test_a_stage_has_the_epoch_of_its_table(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path)
    stage = stage_over(spark, table, tmp_path)
    assert stage.ingest(batch(), NOON).epoch == 1
    table.fence(7)
    assert stage.ingest(batch(), NOON).epoch == 7
    assert table.refresh().n == 2


def test_a_batch_is_read_while_another_one_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lock, read = threading.Lock(), threading.Event()
    stage = stage_over(spark, table_in(tmp_path), tmp_path, lock)
    thread = threading.Thread(target=stage.ingest, args=(batch(verify=read.set), NOON))
    with lock:
        thread.start()
        assert read.wait(PATIENCE)
        assert stage.table.reader().refresh().n == 0
    thread.join(PATIENCE)
    assert stage.table.reader().refresh().n == 1
