"""One micro-batch of the bronze job: from a planned range to a bronze commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.bronze.stage import BronzeStage
from headgate.jobs.errors import PlanError
from headgate.jobs.planning import batch_ends
from headgate.sources.files import FilesIntake
from headgate.sources.files_log import LoggedFile
from headgate.sources.reading import FilesReader
from headgate.tables.state import State

READ_ATTEMPTS = 3
"""A file that cannot be read is tried this often before it is set aside."""


class Intake:
    """Feeds bronze from the files log. Listing and reading happen on different threads, so
    everything that touches the log holds one lock."""

    def __init__(
        self,
        spark: SparkSession,
        files: FilesIntake,
        bronze: BronzeStage,
        clock: Callable[[], datetime],
    ) -> None:
        self._reader = FilesReader(spark, files.landing, files.source)
        self._files = files
        self._bronze = bronze
        self._clock = clock
        self._lock = threading.Lock()

    @property
    def position(self) -> int:
        """The sequence up to which bronze has absorbed the files log."""
        return int(self._bronze.table.refresh().offsets.get("sequence", 0))

    def list_new(self) -> bool:
        with self._lock:
            return self._files.list_new(self._clock())

    def ends(self, after: int) -> list[int]:
        """Where the next micro-batches may end."""
        source = self._files.source
        with self._lock:
            pending = self._files.pending(after)
        return list(
            batch_ends(
                pending,
                max_files=source.max_files_per_batch,
                max_bytes=source.max_bytes_per_batch,
            )
        )

    def backlog(self, after: int) -> tuple[int, int]:
        """Files and bytes recorded behind a sequence."""
        with self._lock:
            pending = self._files.pending(after)
        return len(pending), sum(f.size for f in pending)

    def absorb(self, start: int, end: int) -> State:
        """Commit the files in ``(start, end]`` as bronze's next batch.

        Raises PlanError if bronze does not stand at ``start``; FileChangedError if a file is not
        what was recorded. A file that cannot be read is set aside after ``READ_ATTEMPTS``.
        """
        if self.position != start:
            raise PlanError(
                f"the planned range begins at {start}, but bronze ends at {self.position}",
                remedy="start again: the range is planned anew from bronze's last commit",
            )
        attempt = 1
        while True:
            with self._lock:
                files = self._files.readable(start, end)
            try:
                return self._commit(files, start, end)
            except (PySparkException, Py4JError):  # toArrow lets the JVM's own through
                # Spark names the task that failed, not the file: look for it.
                if attempt < READ_ATTEMPTS:
                    attempt += 1
                    continue
                with self._lock:
                    if not self._files.set_unreadable_aside(files, self._clock()):
                        raise

    def _commit(self, files: Sequence[LoggedFile], start: int, end: int) -> State:
        def verify() -> None:
            with self._lock:
                self._files.readable(start, end)

        records = self._records(files)
        return self._bronze.absorb(records, {"sequence": end}, self._clock(), verify)

    def _records(self, files: Sequence[LoggedFile]) -> DataFrame:
        if files:
            return self._reader.read(files)
        return self._bronze.no_records()
