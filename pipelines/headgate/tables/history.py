"""Reading batches back: which files a table's commits added, in order, without a gap."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from headgate.storage.files import Storage
from headgate.tables.errors import LogGapError
from headgate.tables.log import commit_info, read_entry
from headgate.tables.state import State, decode
from headgate.tables.table import DataFile, Table


@dataclass(frozen=True)
class Batch:
    """A data commit: it absorbed bronze's ``(state.from_n, state.n]`` and added ``files``."""

    version: int
    state: State
    files: tuple[DataFile, ...]


def read_commit(storage: Storage, version: int) -> Batch | None:
    """One entry of a Delta log; None if Headgate did not write it.

    Raises LogGapError if the entry is missing or damaged.
    """
    actions = read_entry(storage, version)
    state = decode(commit_info(actions))
    if state is None:
        return None
    files = tuple(_data_file(a["add"]) for a in actions if "add" in a)
    return Batch(version, state, files)


def _data_file(add: dict[str, object]) -> DataFile:
    stats = str(add["stats"])
    return DataFile(
        path=unquote(str(add["path"])),
        size=int(str(add["size"])),
        rows=int(json.loads(stats)["numRecords"]),
        stats=stats,
        partition=dict(add["partitionValues"]),  # type: ignore[call-overload]
    )


def batches(table: Table, after: int, upto: int) -> tuple[Batch, ...]:
    """The data commits that absorbed ``(after, upto]``, oldest first.

    Raises LogGapError if a batch in between is missing.
    """
    found = tuple(reversed(tuple(_walk_back(table, after, upto))))
    reached = after
    for batch in found:
        if batch.state.from_n != reached:
            raise _gap(table, reached, batch.state.from_n)
        reached = batch.state.n
    if reached != upto:
        raise _gap(table, reached, upto)
    return found


def _walk_back(table: Table, after: int, upto: int) -> Iterator[Batch]:
    version = table.refresh().data_commit
    while version > 0:
        batch = read_commit(table.storage, version)
        version -= 1
        if batch is None or batch.state.kind != "data" or batch.state.n > upto:
            continue
        if batch.state.n <= after:
            return
        yield batch


def _gap(table: Table, reached: int, following: int) -> LogGapError:
    return LogGapError(
        f"{table.name}: batches {reached + 1} to {following} are not in the table's log",
        remedy="restore the table's folder from a backup; nothing was written",
    )


def live_files(handle: DeltaTable) -> tuple[DataFile, ...]:
    """The data files of a handle's version, with the statistics of its log."""
    return _described(_add_actions(handle))


def partition_files(handle: DeltaTable, column: str, value: bool) -> tuple[DataFile, ...]:
    """The live files of one partition. What it costs depends on them: a table may have many more,
    and making a Python object of each would cost a batch more than its data."""
    actions = _add_actions(handle)
    return _described(actions.filter(pc.equal(_nested(actions, "partition", column), value)))


def overlapping_files(
    handle: DeltaTable, column: str, spans: Sequence[tuple[int, int]]
) -> tuple[DataFile, ...]:
    """The live files that may hold a time of ``column`` within ``spans``: disjoint, rising pairs
    [first, last] in microseconds. A file without bounds may hold any."""
    actions = _add_actions(handle)
    lowest, highest = (_nested(actions, bound, column) for bound in ("min", "max"))
    bounded = pc.and_(pc.is_valid(lowest), pc.is_valid(highest)).to_numpy(zero_copy_only=False)
    low, high = (
        pc.fill_null(bound.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 0).to_numpy()
        for bound in (lowest, highest)
    )
    firsts, lasts = (np.array(ends, np.int64) for ends in zip(*spans, strict=True))
    # The first span that ends where the file begins or later; the sentinel is after every file.
    following = np.searchsorted(lasts, low)
    begins = np.append(firsts, np.iinfo(np.int64).max)[following]
    return _described(actions.filter(pa.array(~bounded | (begins <= high + _ROUNDED))))


_ROUNDED = 1_000  # microseconds: what others write into a log is cut off at milliseconds


def _add_actions(handle: DeltaTable) -> pa.Table:
    return pa.table(handle.get_add_actions(flatten=False)).combine_chunks()


def _nested(actions: pa.Table, group: str, column: str) -> pa.ChunkedArray:
    """A field of a struct of the add actions; nulls where no file has it."""
    if group in actions.column_names:
        fields = actions.column(group)
        if fields.type.get_field_index(column) >= 0:
            return pc.struct_field(fields, column)
    return pa.chunked_array([pa.nulls(len(actions), pa.timestamp("us", "UTC"))])


def _described(actions: pa.Table) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(
            path=unquote(row["path"]),
            size=row["size_bytes"],
            rows=row["num_records"] or 0,
            stats=json.dumps(
                {"min": row.get("min") or {}, "max": row.get("max") or {}}, default=str
            ),
            partition={k: _partition_text(v) for k, v in (row.get("partition") or {}).items()},
        )
        for row in actions.to_pylist()
    )


def _partition_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
