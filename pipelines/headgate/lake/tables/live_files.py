"""The data files of a table's version, from its log and its last Delta checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import Bounds, DataFile, statistics


def live_files(handle: DeltaTable) -> tuple[DataFile, ...]:
    """The data files of a handle's version, with the statistics of its log."""
    return _described(handle, _add_actions(handle))


def live_paths(handle: DeltaTable) -> frozenset[str]:
    """The paths of a version's data files. Cheap, even for many files."""
    return frozenset(map(unquote, _add_actions(handle).column("path").to_pylist()))


def partition_files(handle: DeltaTable, column: str, value: bool) -> tuple[DataFile, ...]:
    """The live files of one partition. The cost depends only on their number: Python objects for
    all files of a large table would cost more than the data of a batch."""
    actions = _add_actions(handle)
    return _described(
        handle, actions.filter(pc.equal(_nested(actions, "partition", column), value))
    )


def files_of_batches(handle: DeltaTable, batches: Collection[int]) -> tuple[DataFile, ...]:
    """The live files that may have rows of some batches, those of replays. Headgate never merges
    these with other batches."""
    return tuple(f for f in live_files(handle) if not f.is_ours or f.n in batches)


def overlapping_files(
    handle: DeltaTable, column: str, spans: Sequence[tuple[int, int]]
) -> tuple[DataFile, ...]:
    """The live files that may have a time of ``column`` within ``spans``: disjoint, rising pairs
    [first, last] in microseconds. A file without bounds may have any time. No file has a time
    within no span."""
    if not spans:
        return ()
    actions = _add_actions(handle)
    lowest, highest = (_nested(actions, bound, column) for bound in ("min", "max"))
    bounded = pc.and_(pc.is_valid(lowest), pc.is_valid(highest)).to_numpy(zero_copy_only=False)
    low, high = (
        pc.fill_null(bound.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 0).to_numpy()
        for bound in (lowest, highest)
    )
    firsts, lasts = (np.array(ends, np.int64) for ends in zip(*spans, strict=True))
    # The first span that ends at or after the file's begin. The sentinel is after every file.
    following = np.searchsorted(lasts, low)
    begins = np.append(firsts, np.iinfo(np.int64).max)[following]
    return _described(handle, actions.filter(pa.array(~bounded | (begins <= high + _ROUNDED))))


def latest_time(handle: DeltaTable, column: str) -> int | None:
    """An upper bound of the times of ``column``, in microseconds since 1970 UTC; None if there are
    no files. A file without bounds may have any time."""
    bounds = _nested(_add_actions(handle), "max", column)
    if bounds.null_count:
        return _ANY_TIME
    highest = pc.max(bounds)
    found = highest.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).as_py()
    return None if found is None else int(found) + _ROUNDED


_ANY_TIME = (1 << 63) - 1
_ROUNDED = 1_000  # microseconds: other tools truncate times in a log to milliseconds


def _add_actions(handle: DeltaTable) -> pa.Table:
    return pa.table(handle.get_add_actions(flatten=False)).combine_chunks()


def _nested(actions: pa.Table, group: str, column: str) -> pa.ChunkedArray:
    """A field of a struct of the add actions; all null if no file has it."""
    if group in actions.column_names:
        fields = actions.column(group)
        if fields.type.get_field_index(column) >= 0:
            return pc.struct_field(fields, column)
    return pa.chunked_array([pa.nulls(len(actions), pa.timestamp("us", "UTC"))])


def _described(handle: DeltaTable, actions: pa.Table) -> tuple[DataFile, ...]:
    return tuple(_data_file(handle, row) for row in actions.to_pylist())


def _data_file(handle: DeltaTable, row: Mapping[str, Any]) -> DataFile:
    path, partition = unquote(row["path"]), row.get("partition") or {}
    rows = row["num_records"]
    if rows is None:
        rows = _rows_in(handle, path)
    return DataFile(
        path=path,
        size=row["size_bytes"],
        rows=rows,
        stats=statistics(rows, *_bounds(row)),
        partition={k: _partition_text(v) for k, v in partition.items()},
    )


def _rows_in(handle: DeltaTable, path: str) -> int:
    """The rows of a file that another tool has added without statistics, from its footer. 0 for a
    file that is missing or damaged: whoever reads it finds that."""
    with suppress(OSError, pa.ArrowInvalid), Storage(handle.table_uri).open(path) as file:
        return int(pq.read_metadata(file).num_rows)
    return 0


def _bounds(row: Mapping[str, Any]) -> tuple[str, Bounds | None]:
    """The column for which a file has bounds, and the bounds."""
    lowest, highest = row.get("min") or {}, row.get("max") or {}
    for column, low in lowest.items():
        if low is not None and (high := highest.get(column)) is not None:
            return column, (low, high)
    return "", None


def _partition_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
