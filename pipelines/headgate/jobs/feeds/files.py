"""The feed of the files source: from a range of the files log to a bronze commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.bronze.stage import BronzeStage, Reached
from headgate.jobs.errors import PlanError
from headgate.jobs.feeds.feed import Feed
from headgate.jobs.planning import batch_ends
from headgate.sources.files.intake import FilesIntake
from headgate.sources.files.log import LoggedFile
from headgate.sources.files.reading import FilesReader
from headgate.storage.backlog import Backlog

LIST_EVERY = 1.0  # seconds between listings of the landing folder
SETTLING = 0.25  # seconds between looks at what is still being written
READ_ATTEMPTS = 3
"""A file that cannot be read is tried this often before it is set aside."""


class FilesFeed(Feed):
    """Feeds bronze from the files log. Positions are sequences. Listing and reading happen on
    different threads, so everything that touches the log holds one lock."""

    every = LIST_EVERY

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
        return self._bronze.table.refresh().sequence

    def poll(self, *, final: bool) -> None:
        """List what is new; ``final``: wait until nothing is settling any more."""
        while self.list_new() and final:
            time.sleep(SETTLING)

    def list_new(self) -> bool:
        """Record what is new and has settled; True if something is still settling."""
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

    def backlog(self, after: int) -> Backlog:
        """Files and bytes recorded behind a sequence."""
        with self._lock:
            pending = self._files.pending(after)
        return Backlog("files", len(pending), sum(f.size for f in pending))

    def has_absorbed_all(self, position: int) -> bool:
        return not self.ends(position)

    def absorb(self, start: int, end: int) -> bool:
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
                self._commit(files, start, end)
                return True
            except (PySparkException, Py4JError):  # toArrow lets the JVM's own through
                # Spark names the task that failed, not the file: look for it.
                if attempt < READ_ATTEMPTS:
                    attempt += 1
                    continue
                with self._lock:
                    if not self._files.set_unreadable_aside(files, self._clock()):
                        raise

    def _commit(self, files: Sequence[LoggedFile], start: int, end: int) -> None:
        def verify() -> None:
            with self._lock:
                self._files.readable(start, end)

        records = self._records(files)
        self._bronze.absorb(records, Reached({"sequence": end}), self._clock(), verify)

    def _records(self, files: Sequence[LoggedFile]) -> DataFrame:
        if files:
            return self._reader.read(files)
        return self._bronze.no_records()
