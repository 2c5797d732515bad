"""Bronze over a source of several partitions: frames processed as a broker would deliver them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.sources.micro_batches import BatchEnd, SourceBatch
from headgate.flow.sources.records import PartedRecords, RecordsInMemory
from headgate.lake.storage.files import Storage
from headgate.lake.tables.record_shape import record_schema
from headgate.lake.tables.table import Table
from tests.oracle import SourceRecord, derive
from tests.support.declared import source_of
from tests.support.events import readings
from tests.support.landing import ARRIVED
from tests.support.readings import NOON, declare, rules
from tests.support.tables import compare_bronze, read, state

pytestmark = pytest.mark.spark

PARTITIONS = 3


def deal() -> list[SourceRecord]:
    """The same readings over three partitions, each with its own offsets; the third partition joins
    late."""
    records = []
    for number, value in enumerate(readings(150, seed=11)):
        partition = number % (2 if number < 60 else PARTITIONS)
        records.append(SourceRecord(partition, number * 7, value, ARRIVED))
    return records


def row(record: SourceRecord) -> dict[str, object]:
    at = record.ingested_at
    position = {"partition": record.partition, "offset": record.offset}
    return {"value": record.value, **position, "ingested_at": at, "seen_at": at}


def test_each_partition_has_its_clock_and_its_ids(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = declare(tmp_path, tmp_path)
    storage = Storage(str(tmp_path / "root" / "readings"))

    def stage() -> BronzeStage:
        return BronzeStage(
            spark, Table(storage, "bronze/raw", pipeline="readings"), source_of(pipeline)
        )

    records = deal()
    bronze = stage()
    bronze.shape.create(pipeline.digest)
    bronze.table.fence(1)
    for number, start in enumerate(range(0, len(records), 50), 1):
        if number == 3:  # a restart
            bronze = stage()
            bronze.table.fence(2)
        batch = [row(record) for record in records[start : start + 50]]
        # The rows are in reverse order: bronze has to restore the order of the log.
        table = pa.Table.from_pylist(batch[::-1], record_schema("file"))
        reached = BatchEnd({"0": number}, range(PARTITIONS))
        parted = PartedRecords([RecordsInMemory(table)])
        bronze.ingest(SourceBatch(parted, reached), datetime.now(UTC))
        known = derive(records[: start + 50], rules(), partitions=range(PARTITIONS))
        watermark = state(tmp_path / "root", "bronze/raw")["watermark"]
        since = None if known.clock is None else (known.clock - NOON) // timedelta(microseconds=1)
        assert since == (
            None if watermark is None else watermark - int(NOON.timestamp()) * 1_000_000
        )
        assert (watermark is None) == (number == 1)
    expected = derive(records, rules())
    assert compare_bronze(read(tmp_path / "root", "bronze/raw"), expected) == []
