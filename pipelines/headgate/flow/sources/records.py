"""The records of a batch, as a source gives them to bronze: read in the driver or in Spark's
Python workers, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLOCK = 4 << 20  # bytes in memory

Blocks = Iterator[pa.Table]
"""Tables of ``lake.tables.record_shape.record_schema``. Offsets rise from block to block."""


class Records(ABC):
    """The records of one batch."""

    @property
    @abstractmethod
    def size(self) -> float:
        """About how many bytes the records have."""

    @abstractmethod
    def blocks(self) -> Blocks:
        """Read all records in this process."""

    @abstractmethod
    def in_workers(
        self, spark: SparkSession, most: int, run: Callable[[Blocks], bytes]
    ) -> list[bytes]:
        """Call ``run`` in Spark's Python workers with the blocks of each task, and return what it
        returned. There are about ``most`` tasks. A task may have no block."""


class RecordsPart(Protocol):
    """A part of a batch that can be read on any machine. Parts are pickled."""

    @property
    def size(self) -> int:
        """About how many bytes its records have."""

    def blocks(self) -> Blocks:
        """The records, in blocks of a few megabytes. May raise OSError, EOFError, zlib.error or
        pa.ArrowException."""


@dataclass(frozen=True)
class RecordsInMemory:
    """Records that are in memory."""

    table: pa.Table

    @property
    def size(self) -> int:
        return int(self.table.nbytes)

    def blocks(self) -> Blocks:
        yield self.table


class PartedRecords(Records):
    """The records of some parts, whose offsets rise from part to part."""

    def __init__(self, parts: Sequence[RecordsPart]) -> None:
        self._parts = parts

    @property
    def size(self) -> float:
        return sum(part.size for part in self._parts)

    def blocks(self) -> Blocks:
        return _blocks(self._parts)

    def in_workers(
        self, spark: SparkSession, most: int, run: Callable[[Blocks], bytes]
    ) -> list[bytes]:
        groups = shared_out(self._parts, most)
        tasks = spark.sparkContext.parallelize(groups, len(groups))
        results: list[bytes] = tasks.map(lambda parts: run(_blocks(parts))).collect()
        return results


class MovedRecords(Records):
    """Records at other offsets. ``folder`` is put before the paths of their files."""

    def __init__(self, records: Records, shift: int, folder: str | None = None) -> None:
        self._records = records
        self._moved = partial(_moved, shift, folder)

    @property
    def size(self) -> float:
        return self._records.size

    def blocks(self) -> Blocks:
        return map(self._moved, self._records.blocks())

    def in_workers(
        self, spark: SparkSession, most: int, run: Callable[[Blocks], bytes]
    ) -> list[bytes]:
        moved = self._moved

        def of(blocks: Iterator[pa.Table]) -> bytes:
            return run(map(moved, blocks))

        return self._records.in_workers(spark, most, of)


class FrameRecords(Records):
    """``count`` records that Spark reads. ``record_size`` is about how many bytes a record has. It
    is measured when the records are read. The frame has the columns of ``record_schema``."""

    def __init__(self, frame: DataFrame, count: int, record_size: float) -> None:
        self._frame, self._count, self.record_size = frame, count, record_size

    @property
    def size(self) -> float:
        return self._count * self.record_size

    def blocks(self) -> Blocks:
        table = self._frame.toArrow()
        self._measured(table.nbytes)
        yield from (pa.Table.from_batches([batch]) for batch in table.to_batches())

    def in_workers(
        self, spark: SparkSession, most: int, run: Callable[[Blocks], bytes]
    ) -> list[bytes]:
        def of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            first = next(batches, None)
            if first is not None:
                counted = _CountedTables(chain([first], batches))
                result = pa.array([run(counted)], pa.binary())
                yield pa.record_batch({"result": result, "size": pa.array([counted.size])})

        done = self._frame.mapInArrow(of, "result binary, size bigint").toArrow()
        self._measured(sum(done.column("size").to_pylist()))
        results: list[bytes] = done.column("result").to_pylist()
        return results

    def _measured(self, size: int) -> None:
        self.record_size = size / max(self._count, 1)


class _CountedTables(Iterator[pa.Table]):
    """Batches as blocks; ``size`` is the number of bytes in the blocks so far."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self.size = batches, 0

    def __next__(self) -> pa.Table:
        batch = next(self._batches)
        self.size += batch.nbytes
        return pa.Table.from_batches([batch])


def shared_out(parts: Sequence[RecordsPart], most: int) -> list[list[RecordsPart]]:
    """``parts`` in at most ``most`` groups of neighbours of about equal size."""
    total, taken = sum(part.size for part in parts), 0
    groups: list[list[RecordsPart]] = [[] for _ in range(most)]
    for part in parts:
        middle = taken + part.size / 2
        groups[min(int(middle * most / max(total, 1)), most - 1)].append(part)
        taken += part.size
    return [group for group in groups if group]


def _blocks(parts: Iterable[RecordsPart]) -> Blocks:
    return _joined(block for part in parts for block in part.blocks())


def _joined(blocks: Iterable[pa.Table]) -> Blocks:
    """Small neighbours as one block: each block costs milliseconds, and a file may have a single
    record."""
    held, size = list[pa.Table](), 0
    for block in blocks:
        more = block.nbytes
        if held and size + more > _BLOCK:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(block)
        size += more
    if held:
        yield pa.concat_tables(held)


def _moved(shift: int, folder: str | None, rows: pa.Table) -> pa.Table:
    changed = {"offset": pc.add(rows.column("offset"), pa.scalar(shift, pa.int64()))}
    if folder is not None:
        changed["file"] = pc.binary_join_element_wise(folder, rows.column("file"), "/")
    return pa.table(
        [changed.get(name, rows.column(name)) for name in rows.column_names], schema=rows.schema
    )
