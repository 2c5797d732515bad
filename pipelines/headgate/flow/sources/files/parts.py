"""The parts of landing files that are read at once.

The position of a text record is the byte at which its split starts plus its number among the lines
of the split that count. Such a line has at least two bytes, so the positions of a split never reach
the next split. A compressed file is one split. The position of any other record is its row number.

Whether a file is compressed is known when it is opened, so its parts are planned as if it was not.
The first part then has all of it, and the others are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.flow.sources.files import rows as arrow_rows
from headgate.flow.sources.files.contents import FIRST, not_parquet, text_of
from headgate.flow.sources.files.csv_format import Header, dialect_of, header_of
from headgate.flow.sources.files.csv_rows import Row, csv_header, csv_rows, line_documents
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.lines import (
    BLANKS,
    BLOCK,
    END,
    count_lines,
    csv_blanks,
    line_blocks,
    lines_of,
)
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.records import Blocks, PartedRecords, Records, RecordsPart
from headgate.lake.storage.files import Storage
from headgate.lake.tables.record_shape import offset_of, record_schema

SPLIT = 8 << 20
"""The size of a split. It is a part of every offset: never change it."""

_RATIO = 6  # about how many bytes of text a byte of gzip or Parquet contains
_COMPRESSED = (".gz", ".gzip", ".bz2", ".zst")  # how their names end, for estimates


def parts_of_files(
    landing: Storage, source: FilesSource, files: Sequence[LoggedFile]
) -> list[RecordsPart]:
    """The parts of ``files``, in the order of their records."""
    if source.format == "parquet":
        return [ParquetRows(landing, file) for file in files]
    if source.format == "csv" and source.csv_multiline:
        return [CsvRows(landing, source, file) for file in files]
    kind = CsvLines if source.format == "csv" else JsonLines
    return [kind(landing, source, *place) for file in files for place in _places(file)]


def records_of(landing: Storage, source: FilesSource, files: Sequence[LoggedFile]) -> Records:
    """The records of ``files``."""
    return PartedRecords(parts_of_files(landing, source, files))


def _places(file: LoggedFile) -> Iterator[tuple[LoggedFile, int, int, int]]:
    """The fields file, split, start and end of each part of a file of lines."""
    for split in range(0, file.size, SPLIT):
        split_end = min(split + SPLIT, file.size)
        for start in range(split, split_end, BLOCK):
            yield file, split, start, min(start + BLOCK, split_end)


@dataclass(frozen=True)
class JsonLines:
    """JSON: the lines of ``file`` that begin in (start, end], which is a part of the split at byte
    ``split``."""

    landing: Storage
    source: FilesSource
    file: LoggedFile
    split: int
    start: int
    end: int

    @property
    def size(self) -> int:
        if not _seems_compressed(self.file):
            return self.end - self.start
        return 0 if self.start else self.file.size * _RATIO

    def blocks(self) -> Blocks:
        position = self.split + self._lines_before()
        with text_of(self.landing, self.file.path, self.start) as text:
            end = END if text.is_compressed else self.end
            for block in line_blocks(text.opened.read, self.start, end):
                lines = lines_of(block, self._blanks)
                yield self._records(position, lines)
                position += len(lines)

    def _records(self, position: int, lines: pa.Array) -> pa.Table:
        return records_from(self.file, position, {"value": lines})

    def _lines_before(self) -> int:
        """The number of lines that count in the split before this part."""
        if self.start == self.split:
            return 0
        with text_of(self.landing, self.file.path, self.split) as text:
            if text.is_compressed:
                return 0
            blocks = line_blocks(text.opened.read, self.split, self.start)
            return sum(count_lines(block, self._blanks) for block in blocks)

    @property
    def _blanks(self) -> str:
        return BLANKS


@dataclass(frozen=True)
class CsvLines(JsonLines):
    """CSV without line breaks in cells. The file's first line that counts is its header,
    unless the names of the cells are declared."""

    def _records(self, position: int, lines: pa.Array) -> pa.Table:
        header = self._header(position, lines)
        if position == 0 and self.source.csv_header:
            position, lines = 1, lines[1:]
        cells, details = line_documents(lines, header, dialect_of(self.source))
        columns = {"value": lines, "document": cells, "detail": details}
        return records_from(self.file, position, columns)

    @property
    def _blanks(self) -> str:
        return csv_blanks(self.source.csv_delimiter)

    def _header(self, position: int, lines: pa.Array) -> Header:
        if position == 0 and self.source.csv_header and len(lines) > 1:
            return header_of(lines[0].as_py(), self.source)  # the file need not be opened again
        return self._header_of_file

    @cached_property
    def _header_of_file(self) -> Header:
        return csv_header(self.landing, self.source, self.file.path)


@dataclass(frozen=True)
class CsvRows:
    """CSV with line breaks in cells: all rows of ``file``, each as JSON, or as its bytes if this is
    not possible."""

    landing: Storage
    source: FilesSource
    file: LoggedFile

    @property
    def size(self) -> int:
        return _size(self.file)

    def blocks(self) -> Blocks:
        position = 0
        with text_of(self.landing, self.file.path) as text:
            for rows in _batches(csv_rows(text.opened, self.source)):
                yield records_from(self.file, position, _columns(rows))
                position += len(rows)


@dataclass(frozen=True)
class ParquetRows:
    """Parquet: all rows of ``file``, each as JSON."""

    landing: Storage
    file: LoggedFile

    @property
    def size(self) -> int:
        return self.file.size * _RATIO

    def blocks(self) -> Blocks:
        position = 0
        with self.landing.open(self.file.path) as raw:
            for rows in self._rows(raw):
                yield records_from(self.file, position, {"value": arrow_rows.row_documents(rows)})
                position += rows.num_rows

    def _rows(self, raw: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from arrow_rows.parquet_rows(raw)
        except pa.ArrowInvalid as error:
            raw.seek(0)
            raise not_parquet(raw.read(FIRST)) or error from None


def _size(file: LoggedFile) -> int:
    return file.size * (_RATIO if _seems_compressed(file) else 1)


def _seems_compressed(file: LoggedFile) -> bool:
    return file.path.endswith(_COMPRESSED)


def _columns(rows: list[Row]) -> dict[str, pa.Array]:
    values, documents, details = zip(*rows, strict=True)
    return {
        "value": pa.array(values, pa.binary()),
        "document": pa.array(documents, pa.binary()),
        "detail": pa.array(details, pa.string()),
    }


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """The rows in groups of about ``BLOCK`` bytes."""
    batch, size = list[Row](), 0
    for row in rows:
        batch.append(row)
        size += len(row.value)
        if size >= BLOCK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def records_from(file: LoggedFile, position: int, columns: dict[str, pa.Array]) -> pa.Table:
    """The records of ``file`` from ``position`` on; ``columns`` has ``value``, and may have
    ``document`` and ``detail``."""
    schema, count = record_schema("file", has_document="document" in columns), len(columns["value"])
    first = offset_of(file.sequence, position)
    seen = pa.repeat(pa.scalar(file.seen, schema.field("seen_at").type), count)
    columns |= {
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(np.arange(first, first + count)),
        "file": pa.repeat(file.path, count),
        "ingested_at": seen,
        "seen_at": seen,
    }
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
