"""Columns of data files in memory.

A file never changes, so only the new files of a new version of a table are read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
from pyarrow import dataset as ds

from headgate.insight.dashboard.reading.versions import ReleasedVersion

Source = Any  # a pyarrow Table or Dataset, which have no types

MOST_BYTES = 384 << 20
MOST_ROWS = 4_000_000
"""A larger version is not kept in memory: each question reads what it needs of it."""
_ASSEMBLED = 64  # versions and their columns, which share the memory of the files


class ColumnCache:
    """Keeps requested columns, up to ``most_bytes``; the least recently used files are removed
    first. ``columns_read`` counts how often a column of a file was read."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS) -> None:
        self._most_bytes, self._most_rows = most_bytes, most_rows
        self._files: OrderedDict[tuple[str, str], dict[str, pa.ChunkedArray]] = OrderedDict()
        self._assembled: OrderedDict[tuple[object, ...], pa.Table] = OrderedDict()
        self._too_large: dict[tuple[str, ...], int] = {}  # the rows that were too many
        self._bytes = 0
        self._lock = Lock()
        self.columns_read = 0

    def source(self, version: ReleasedVersion, columns: Sequence[str]) -> Source:
        """An object from which DuckDB can read these columns of a version."""
        if version.rows >= self._most_rows:
            return version.dataset
        with self._lock:
            key = (*version.key, *columns)
            if (found := self._assembled.get(key)) is not None:
                self._assembled.move_to_end(key)
                return found
            schema = pa.schema([version.schema.field(name) for name in columns])
            parts = self._parts(version, schema)
            self._shrink()
            if parts is None:
                return version.dataset
            made = pa.concat_tables(parts) if parts else schema.empty_table()
            if all((version.address, each.path) in self._files for each in version.fragments):
                self._assembled[key] = made
            while len(self._assembled) > _ASSEMBLED:
                self._assembled.popitem(last=False)
            return made

    def _parts(self, version: ReleasedVersion, schema: pa.Schema) -> list[pa.Table] | None:
        """The columns of each file; None if they do not fit into the memory."""
        about = (version.address, *schema.names)
        if version.rows >= self._too_large.get(about, self._most_rows):
            return None
        parts: list[pa.Table] = []
        free = self._most_bytes
        for fragment in version.fragments:
            kept = self._files.get((version.address, fragment.path), {})
            is_read = all(name in kept for name in schema.names)
            if free < 0 or (not is_read and _least_bytes(fragment, schema.names) > free):
                self._too_large[about] = version.rows
                return None
            parts.append(self._part(version, fragment, schema))
            free -= parts[-1].nbytes
        return parts

    def _part(self, version: ReleasedVersion, fragment: ds.Fragment, schema: pa.Schema) -> pa.Table:
        key = (version.address, fragment.path)
        kept = self._files.setdefault(key, {})
        self._files.move_to_end(key)
        if missing := [name for name in schema.names if name not in kept]:
            read = fragment.to_table(schema=version.schema, columns=missing)
            self.columns_read += len(missing)
            for name in missing:
                kept[name] = read.column(name)
                self._bytes += kept[name].nbytes
        return pa.table([kept[name] for name in schema.names], schema=schema)

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes and self._files:
            _, gone = self._files.popitem(last=False)
            self._bytes -= sum(column.nbytes for column in gone.values())
            # Otherwise assembled versions would keep the memory of removed files.
            self._assembled.clear()


def _least_bytes(fragment: ds.Fragment, columns: Sequence[str]) -> int:
    """The memory that columns of a file need at least: a repeated value is in the file once."""
    groups = (fragment.metadata.row_group(n) for n in range(fragment.metadata.num_row_groups))
    chunks = (group.column(n) for group in groups for n in range(group.num_columns))
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] in columns
    )
