"""Readers that poll a Delta table while it is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable

from tests.support.rounds import IN_FULL
from tests.support.waiting import wait_until

Values = tuple[int, ...]
"""The values of a column in all rows of a table, sorted."""
Look = Callable[[Path], Values]
"""What one reader sees now."""


def with_deltalake(column: str) -> Look:
    def look(table: Path) -> Values:
        rows = pa.table(DeltaTable(str(table)).to_pyarrow_table(columns=[column]))
        return tuple(sorted(rows.column(column).to_pylist()))

    return look


def with_duckdb(column: str) -> Look:
    """DuckDB over the list of files, as ``headgate query`` reads: its own extension for Delta is
    not installed everywhere."""

    def look(table: Path) -> Values:
        files = DeltaTable(str(table)).file_uris()
        if not files:
            return ()
        with duckdb.connect() as connection:
            sql = f"select {column} from read_parquet(?) order by all"
            return tuple(row[0] for row in connection.execute(sql, [files]).fetchall())

    return look


def with_polars(column: str) -> Look:
    def look(table: Path) -> Values:
        return tuple(sorted(polars.read_delta(str(table), columns=[column])[column].to_list()))

    return look


PAUSE = 0.1 if IN_FULL else 0.5  # seconds between reads: readers share a machine with the driver


@contextmanager
def polled(
    table: Path, looks: dict[str, Look], pause: float = PAUSE
) -> Iterator[dict[str, list[Values]]]:
    """The values that each reader saw, in order. An error of a reader is raised at the end."""
    seen: dict[str, list[Values]] = {name: [] for name in looks}
    failed: list[BaseException] = []
    end = threading.Event()

    def poll(name: str) -> None:
        try:
            while not end.wait(pause):
                seen[name].append(looks[name](table))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=poll, args=(name,), daemon=True) for name in looks]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        end.set()
        for thread in threads:
            thread.join()
    for error in failed:
        raise error


def looked_again(seen: dict[str, list[Values]], patience: float) -> None:
    """Wait until each reader has begun and ended a read."""
    before = {name: len(found) for name, found in seen.items()}

    def again() -> bool:
        return all(len(seen[name]) >= looks + 2 for name, looks in before.items())

    wait_until(again, f"a reader looks no more: {before}", patience)
