"""Readers that look at a Delta table all the time, while something else writes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from tests.support.rounds import IN_FULL

Look = Callable[[Path], int]
"""The sum of a column over all rows of a table, as one reader sees it now."""


def with_deltalake(column: str) -> Look:
    def look(table: Path) -> int:
        rows = pa.table(DeltaTable(str(table)).to_pyarrow_table(columns=[column]))
        return sum(rows.column(column).to_pylist())

    return look


def with_duckdb(column: str) -> Look:
    def look(table: Path) -> int:
        gold = DeltaTable(str(table)).to_pyarrow_dataset()
        with duckdb.connect() as connection:
            connection.register("gold", gold)
            rows = connection.sql(f"select {column} from gold").to_arrow_table()
        return sum(rows.column(column).to_pylist())

    return look


PAUSE = 0.1 if IN_FULL else 0.5  # seconds between looks: readers share a machine with the driver


@contextmanager
def polled(table: Path, looks: dict[str, Look]) -> Iterator[dict[str, list[int]]]:
    """What each reader saw, in order; an error of one is raised at the end."""
    seen: dict[str, list[int]] = {name: [] for name in looks}
    failed: list[BaseException] = []
    end = threading.Event()

    def poll(name: str) -> None:
        try:
            while not end.wait(PAUSE):
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
