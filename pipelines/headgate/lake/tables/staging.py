"""Writes a batch's files with Spark, before a commit makes them visible.

Every attempt has a folder of its own, so no file is ever overwritten. A file that no commit names
is an orphan; vacuum removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame

from headgate.declaration.kinds import kind_of
from headgate.failpoints import failpoint
from headgate.lake.tables.arrow import attempt_folder, describe
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.row_counts import require_side_rows
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


def stage(
    table: Table,
    state: State,
    rows: DataFrame,
    *,
    time_column: str,
    most_files: int | None = None,
    divided_by: str | None = None,
) -> tuple[DataFile, ...]:
    """Write ``rows`` as Parquet into this attempt's folder and describe the files that have rows.

    ``divided_by`` is a boolean column that is not written to the files: the ``partition`` of a file
    has the value for its rows. ``time_column`` is the timestamp whose minimum and maximum go into
    the log. At most ``most_files`` tasks write (default: one per core), one file each per
    partition. Each file costs time in this batch and in later readers.
    """
    folder = attempt_folder(state)
    # Create the folder here: Hadoop forks a chmod for every folder that it creates.
    table.storage.make_folder(f"{folder}/_temporary/0/_temporary")
    tasks = most_files or rows.sparkSession.sparkContext.defaultParallelism
    writer = rows.coalesce(tasks).write.mode("append")
    if divided := (*table.partition_by, *([divided_by] if divided_by else [])):
        writer = writer.partitionBy(*divided)
    writer.parquet(table.storage.uri(folder))
    files = tuple(f for f in describe(table.storage, folder, time_column) if f.rows)
    failpoint(f"{kind_of(table.name).name}.staged")
    return files


@dataclass(frozen=True)
class Prepared:
    """A commit whose files are written but not visible yet. The commit ``side`` of the table's side
    table comes first: if the table has a batch, its side table must have the rows of that batch."""

    table: Table
    state: State
    add: Sequence[DataFile]
    remove: Sequence[DataFile] = ()
    side: Prepared | None = None

    def require_side_rows(self, key: str, table: Table) -> None:
        """Raises MiscountedError unless a side table has the rows that the commit counts for it
        under ``key``: after the commit ``side``, or as it is without one. Raises FencedError."""
        there = table.refresh() if self.side is None else self.side.state
        require_side_rows(self.table.name, self.state, key, table.name, there)

    def commit(self) -> State:
        """Raises CommitRefusedError if the table has changed since its state was read,
        MiscountedError if the files have other rows than the state says."""
        if self.side is not None:
            self.side.commit()
        return self.table.commit(self.state, add=self.add, remove=self.remove)


Preparation = Callable[[], Prepared | None]
"""Reads a table's state and writes the files of its next commit; None if there is nothing to do."""


def prepare_together(*preparations: Preparation) -> tuple[Prepared, ...]:
    """The prepared commits of different tables, in order. An error of a preparation is raised after
    all of them have ended."""
    return tuple(p for p in side_by_side(preparations) if p is not None)


Result = TypeVar("Result")

# One thread in addition to the stream's thread. It is kept until the process ends, because each
# Python thread is bound to a JVM thread.
_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of some calls, in order. An error of a call is raised after all have ended.

    While one call writes its rows, Spark plans the query of another: planning takes most of the
    time of a small batch. A call must not use this function.
    """
    pending = [_BESIDE.submit(call) for call in calls[1::2]]
    try:
        done = [call() for call in calls[::2]]
    finally:
        wait(pending)
    beside = [each.result() for each in pending]
    return [(beside if place % 2 else done)[place // 2] for place in range(len(calls))]
