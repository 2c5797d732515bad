"""The two passes over a batch: records are decoded, and after they are sequenced, they are written.

A small batch stays in the driver. A larger one is decoded in Spark's Python workers, which keep
their parts on the machine's disk until they are written. If a part is lost, the batch is read
again.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate import exit_codes
from headgate.declaration.model import Record, RecordFormat
from headgate.errors import HeadgateError
from headgate.flow.bronze.decoding.decoder import Decoder
from headgate.flow.bronze.rows import RowShape, write_rows
from headgate.flow.bronze.sequencing import SEQUENCER_INPUT, in_log_order, sequencer_input
from headgate.flow.sources.records import Blocks, Records
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile

IN_DRIVER = 1 << 20
"""Batches of up to this many bytes are decoded and written in the driver, without a Spark job."""


_NONE = SEQUENCER_INPUT.empty_table()


class ScratchLostError(HeadgateError, code=exit_codes.MACHINE):
    """The records that a worker has decoded are no longer in its scratch folder."""


@dataclass(frozen=True)
class Decoding:
    """How records are decoded. ``scratch`` is the name of a folder that nothing else uses."""

    record: Record
    format: RecordFormat
    scratch: str

    def tables(self, blocks: Blocks) -> Iterator[pa.Table]:
        decoder = _decoder(self.record, self.format)
        return (decoder.decode(block) for block in blocks)


@lru_cache(maxsize=16)
def _decoder(record: Record, format: RecordFormat) -> Decoder:
    return Decoder(record, format)


class DecodedBatch(ABC):
    """``ordered`` is the ``SEQUENCER_INPUT`` of the batch, in log order."""

    def __init__(self, thin: Sequence[pa.Table]) -> None:
        self.ordered, self._order = in_log_order(thin)
        self._lengths = [len(part) for part in thin]

    @abstractmethod
    def write(
        self, storage: Storage, folder: str, shape: RowShape, stamps: pa.Table
    ) -> tuple[DataFile, ...]:
        """Write the batch with the ``STAMPS`` of ``ordered``. Raises ScratchLostError."""

    def _shared_out(self, stamps: pa.Table) -> Iterator[pa.Table]:
        """The stamps of each part, sorted by row; ``row`` is then a row of the part."""
        rows = self._order[stamps.column("row").to_numpy()]
        given = stamps.set_column(0, "row", pa.array(rows)).sort_by("row")
        return _shared_out(given, self._lengths)


class InDriver(DecodedBatch):
    """A batch in memory."""

    def __init__(self, decoding: Decoding, blocks: Blocks) -> None:
        tables = list(decoding.tables(blocks))
        super().__init__([sequencer_input(table, decoding.record) for table in tables])
        self._tables = tables

    def stamped(self, shape: RowShape, stamps: pa.Table) -> list[pa.Table]:
        """Bronze's rows."""
        pairs = zip(self._tables, self._shared_out(stamps), strict=True)
        return [shape.stamped(table, own) for table, own in pairs]

    def write(
        self, storage: Storage, folder: str, shape: RowShape, stamps: pa.Table
    ) -> tuple[DataFile, ...]:
        return write_rows(storage, f"{folder}/part-0.parquet", self.stamped(shape, stamps))


class InWorkers(DecodedBatch):
    """A batch in the scratch folders of workers."""

    def __init__(self, decoding: Decoding, records: Records, spark: SparkSession) -> None:
        decoding = replace(decoding, scratch=f"{decoding.scratch}/{uuid.uuid4().hex[:12]}")
        most = spark.sparkContext.defaultParallelism
        done = records.in_workers(spark, most, partial(_decode, decoding))
        found = [(path, _from_ipc(thin)) for path, thin in map(pickle.loads, done)]
        # A task may have no record: an empty file, or the middle of a long line.
        found = [(path, thin) for path, thin in found if len(thin)]
        super().__init__([thin for _, thin in found])
        self._spark = spark
        self._paths: list[str] = [path for path, _ in found]

    def write(
        self, storage: Storage, folder: str, shape: RowShape, stamps: pa.Table
    ) -> tuple[DataFile, ...]:
        tasks = [
            (path, f"{folder}/part-{part}.parquet", _to_ipc(own))
            for part, (path, own) in enumerate(
                zip(self._paths, self._shared_out(stamps), strict=True)
            )
        ]
        if not tasks:
            return ()
        parallel = self._spark.sparkContext.parallelize(tasks, len(tasks))
        written = parallel.map(partial(_write, storage.root, shape)).collect()
        files: list[DataFile] = []
        for each in written:
            if each is None:
                raise _lost()
            files += each
        return tuple(files)


def _lost() -> ScratchLostError:
    return ScratchLostError(
        "the decoded records of a batch were lost before they were written",
        remedy="see whether anything removes files from Spark's local folder, then start again",
    )


def _decode(decoding: Decoding, blocks: Blocks) -> bytes:
    """In a worker: decode blocks into a file of the scratch folder. Returns the file and the
    ``SEQUENCER_INPUT``, pickled."""
    folder = _emptied(Path(decoding.scratch))
    path = folder / f"{uuid.uuid4().hex}.arrow"
    thin, writer = [], None
    for table in decoding.tables(blocks):
        if writer is None:
            writer = pa.ipc.new_file(str(path), table.schema)
        writer.write_table(table)
        thin.append(sequencer_input(table, decoding.record))
    if writer is not None:
        writer.close()
    return pickle.dumps((str(path), _to_ipc(pa.concat_tables([_NONE, *thin]))))


def _emptied(scratch: Path) -> Path:
    """The scratch folder of a batch on this machine. The folders of earlier batches are deleted:
    those batches are written, or have failed."""
    local = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    folder = Path(local) / scratch
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _write(root: str, shape: RowShape, task: tuple[str, str, bytes]) -> tuple[DataFile, ...] | None:
    """In a worker: write a part. None if it is lost."""
    scratch, path, stamps = task
    try:
        file = pa.memory_map(scratch)
    except FileNotFoundError:
        return None
    with file, pa.ipc.open_file(file) as decoded:
        batches = [decoded.get_batch(i) for i in range(decoded.num_record_batches)]
        shared = _shared_out(_from_ipc(stamps), map(len, batches))
        rows = (
            shape.stamped(pa.Table.from_batches([batch]), own)
            for batch, own in zip(batches, shared, strict=True)
        )
        written = write_rows(Storage(root), path, rows)
    Path(scratch).unlink()
    return written


def _shared_out(stamps: pa.Table, lengths: Iterable[int]) -> Iterator[pa.Table]:
    """The stamps of each of some consecutive tables; in the result, ``row`` is a row of that table.
    ``lengths`` are the tables' numbers of rows. ``stamps`` are sorted by row."""
    rows, first = stamps.column("row").to_numpy(), 0
    for length in lengths:
        begin, end = np.searchsorted(rows, (first, first + length))
        own = stamps.slice(begin, end - begin)
        yield own.set_column(0, "row", pa.array(rows[begin:end] - first))
        first += length


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _from_ipc(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()
