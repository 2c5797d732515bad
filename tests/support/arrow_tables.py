"""Tables with a few columns, written and read with Arrow by stages that need no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, SILVER, kind_of
from headgate.failpoints import failpoint
from headgate.lake.tables.arrow import attempt_folder, describe
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from headgate.lake.tables.table_schema import TableSchema

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
Row = dict[str, Any]

_EVENT = [
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
    ("_item", pa.int32()),
    ("_event_id", pa.string()),
    ("_event_time", TIME),
    ("_clock", TIME),
    ("_seals", pa.bool_()),
]
WINDOW = [("window_start", TIME), ("window_end", TIME)]
SCHEMAS: Mapping[str, pa.Schema] = {
    BRONZE.name: pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("file", pa.string()),
            ("ingested_at", TIME),
            ("event_id", pa.string()),
            ("event_time", TIME),
            ("clock", TIME),
            ("duplicate", pa.bool_()),
            ("reason", pa.string()),
            ("passes", pa.bool_()),
            ("seals", pa.bool_()),
        ]
    ),
    QUARANTINE.name: pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("file", pa.string()),
            ("ingested_at", TIME),
            ("event_id", pa.string()),
            ("event_time", TIME),
            ("reason", pa.string()),
            ("column", pa.string()),
            ("detail", pa.string()),
            ("value", pa.binary()),
        ]
    ),
    SILVER.name: pa.schema(_EVENT),
    LATE.name: pa.schema([*_EVENT, *WINDOW, ("reason", pa.string())]),
    GOLD.name: pa.schema([*WINDOW, ("events", pa.int64()), (FINAL, pa.bool_())]),
}
_TIME_COLUMN = {
    BRONZE.name: "event_time",
    QUARANTINE.name: "ingested_at",
    SILVER.name: "_event_time",
    LATE.name: "_event_time",
    GOLD.name: "window_start",
}


def shape_of(table: Table) -> TableSchema:
    kind = kind_of(table.name).name
    return TableSchema(table, SCHEMAS[kind], _TIME_COLUMN[kind])


def staged(
    table: Table, state: State, rows: Sequence[Row], *, final: bool | None = None
) -> tuple[DataFile, ...]:
    """Like ``tables.staging.stage``: writes one file of rows that are in memory."""
    kind, folder = kind_of(table.name).name, attempt_folder(state)
    files: tuple[DataFile, ...] = ()
    if rows:
        schema = pa.schema([field for field in SCHEMAS[kind] if field.name != FINAL])
        sink = pa.BufferOutputStream()
        content = pa.Table.from_pylist(list(rows), schema)
        pq.write_table(content, sink, write_page_checksum=True)
        part = "" if final is None else f"/{FINAL}={str(final).lower()}"
        table.storage.write(f"{folder}{part}/part-0.parquet", sink.getvalue().to_pybytes())
        files = describe(table.storage, folder, _TIME_COLUMN[kind])
    failpoint(f"{kind}.staged")
    return files


def rows_of(table: Table, files: Sequence[DataFile]) -> list[Row]:
    found: list[Row] = []
    for file in files:
        with table.storage.open(file.path) as source:
            found += pq.ParquetFile(source).read().to_pylist()
    return found
