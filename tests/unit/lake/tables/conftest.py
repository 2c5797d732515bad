"""One small Delta table, written as the engine writes its own, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile, statistics
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

TIME = "time"
SCHEMA = pa.schema([("id", pa.int64()), (TIME, pa.timestamp("us", "UTC")), ("final", pa.bool_())])

Open = Callable[[], Table]


@pytest.fixture
def open_table(tmp_path: Path) -> Open:
    """Opens the same table again with each call, like another process or part of a driver."""

    def open_() -> Table:
        return Table(Storage(str(tmp_path)), "gold/t", pipeline="p")

    open_().create(SCHEMA, "digest", time_column=TIME)
    return open_


def file(
    name: str, bounds: tuple[datetime, datetime] | None = None, *, final: bool = False
) -> DataFile:
    """A file as its commit describes it; its content is never read."""
    stats = statistics(1, TIME, bounds)
    return DataFile(f"data/{name}.parquet", 1, 1, stats, {"final": str(final).lower()})


def next_batch(table: Table, *files: DataFile, remove: tuple[DataFile, ...] = ()) -> State:
    held = table.refresh()
    state = replace(held, kind="data", from_n=held.n, n=held.n + 1)
    return table.commit(state, add=files, remove=remove)
