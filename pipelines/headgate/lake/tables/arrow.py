"""Files of a table without Spark: write a few rows, and read footers for the log."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.declaration.kinds import kind_of
from headgate.failpoints import failpoint
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import footer_checksum
from headgate.lake.tables.data_file import Bounds, DataFile, statistics
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


def attempt_folder(state: State) -> str:
    """A folder that only this attempt writes to, so that it contains no orphan of a crash."""
    return f"data/{state.generation}-{state.n}-{uuid.uuid4().hex[:12]}"


def stage_arrow(
    table: Table, state: State, rows: pa.Table, *, time_column: str
) -> tuple[DataFile, ...]:
    """Write rows that are in memory into this attempt's folder and describe the file."""
    if not rows.num_rows:
        return ()
    folder = attempt_folder(state)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_checksum=True)
    table.storage.write(f"{folder}/part-0.parquet", sink.getvalue().to_pybytes())
    files = describe(table.storage, folder, time_column)
    failpoint(f"{kind_of(table.name).name}.staged")
    return files


def describe(storage: Storage, folder: str, time_column: str) -> tuple[DataFile, ...]:
    """The Parquet files under ``folder``, with rows and bounds from their footers."""
    found = (s for s in storage.list(folder, recursive=True) if s.path.endswith(".parquet"))
    return tuple(
        described(storage, s.path, s.size, time_column) for s in sorted(found, key=lambda s: s.path)
    )


def described(storage: Storage, path: str, size: int, time_column: str) -> DataFile:
    """A file of ``size`` bytes, with rows and bounds from its footer."""
    with storage.open(path) as source:
        metadata = pq.read_metadata(source)
        footer = footer_checksum(source)
    stats = statistics(metadata.num_rows, time_column, _bounds(metadata, time_column))
    return DataFile(path, size, metadata.num_rows, stats, _partition(path), footer)


def _bounds(metadata: pq.FileMetaData, column: str) -> Bounds | None:
    index = next(
        (i for i in range(metadata.num_columns) if metadata.schema.column(i).path == column), None
    )
    if index is None:
        return None
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = [(group.column(index).statistics, group.num_rows) for group in groups]
    # A row group that has only nulls has no bounds, and needs none.
    found = [each for each, rows in columns if each is None or each.null_count != rows]
    # If another row group has no bounds, the file gets none: a wrong bound would hide rows.
    if not found or any(each is None or not each.has_min_max for each in found):
        return None
    return min(each.min for each in found), max(each.max for each in found)


def _partition(path: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in path.split("/") if "=" in part)
