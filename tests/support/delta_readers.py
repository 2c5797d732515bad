"""Other readers of Delta tables than Spark: each returns all rows of a table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable

from tests.support.tables import Row


def with_deltalake(table: Path, _: Path) -> list[Row]:
    rows: list[Row] = pa.table(DeltaTable(str(table)).to_pyarrow_table()).to_pylist()
    return rows


def with_duckdb(table: Path, _: Path) -> list[Row]:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("found", DeltaTable(str(table)).to_pyarrow_dataset())
    rows: list[Row] = connection.sql("select * from found").to_arrow_table().to_pylist()
    return rows


def with_polars(table: Path, _: Path) -> list[Row]:
    return polars.read_delta(str(table)).to_dicts()
