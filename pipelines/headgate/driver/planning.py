"""A streaming source that serves only the offsets at which batches end, and no data.

Spark plans micro-batches from it. The data of a batch is read natively in ``foreachBatch``. The
reader runs in one of Spark's Python processes, so the driver passes the ends of batches to it in a
small document. That process imports this module at its start, so it imports no other of Headgate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from headgate.lake.storage.files import Storage


FORMAT = "headgate_reference"


class ReferenceSource(DataSource):
    """Options: ``ends`` is a local JSON file with a rising list of offsets; ``start`` is the offset
    after which the stream begins."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "end bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ReferenceReader(dict(self.options))


class ReferenceReader(DataSourceStreamReader):
    """Each batch ends at the next listed offset after its start."""

    def __init__(self, options: dict[str, str]) -> None:
        self._ends = Path(options["ends"])
        self._start = int(options["start"])

    def initialOffset(self) -> dict[str, int]:
        return {"end": self._start}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        following = (e for e in self._read_ends() if e > start["end"])
        return {"end": next(following, start["end"])}

    def _read_ends(self) -> list[int]:
        found: list[int] = json.loads(self._ends.read_text())["ends"]
        return found

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())

    def commit(self, end: dict[str, int]) -> None:
        pass


def register_reference_source(spark: SparkSession) -> None:
    spark.dataSource.register(ReferenceSource)


def planned_end(storage: Storage, checkpoint: str, batch: int) -> int:
    """The end of a planned batch, from Spark's offset log. The last line is the source's offset."""
    lines = storage.read(f"{checkpoint}/offsets/{batch}").decode().splitlines()
    return int(json.loads(lines[-1])["end"])
