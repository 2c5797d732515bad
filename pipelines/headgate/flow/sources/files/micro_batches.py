"""Micro-batches over a landing folder: from a range of the files log to a bronze commit."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.log import FilesLog, LoggedFile
from headgate.flow.sources.files.parts import records_of
from headgate.flow.sources.micro_batches import BatchEnd, MicroBatchSource, SourceContext
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.driver_requests import SkipRequest

LIST_EVERY = 1.0  # seconds between listings of the landing folder
SETTLING = 0.25  # seconds between listings while files are settling
READ_ATTEMPTS = 3
"""The number of attempts to read a file before it is set aside."""
READ_FAILURES = (
    *(PySparkException, Py4JError),
    *(OSError, EOFError, zlib.error, pa.ArrowException),
)
"""The errors of a failed task, and of a failed read in the driver."""


class FilesMicroBatches(MicroBatchSource):
    """Positions are sequences. Listing and reading run on different threads, so all access to the
    log holds one lock."""

    every = LIST_EVERY

    def __init__(self, log: FilesLog, context: SourceContext) -> None:
        self.log = log
        self._files = FilesIntake(context.source.reads, log)
        self._context = context
        self._bronze = context.bronze
        self._clock = context.clock
        self._lock = threading.Lock()
        self._position = self.position

    @property
    def position(self) -> int:
        """The sequence up to which bronze has ingested the files log."""
        return self._bronze.offsets.get("sequence", 0)

    @property
    def limits(self) -> tuple[int, int]:
        """The most files and bytes of a batch."""
        source = self._files.source
        return source.max_files_per_batch, source.max_bytes_per_batch

    def poll(self, *, final: bool) -> None:
        """List new files. ``final``: wait for the files that are settling now, no longer than
        ``settle``. The next run reads files that appear or grow meanwhile: a producer that never
        pauses must not keep this run from its batches."""
        settling = self.list_new()
        ends = self._context.monotonic() + self._files.source.settle.total_seconds() + SETTLING
        while final and settling and self._context.monotonic() < ends:
            self._context.check()
            time.sleep(SETTLING)
            settling &= self.list_new()

    def list_new(self) -> Set[str]:
        """Record new files that have settled. Returns the paths of those that are still
        settling."""
        with self._lock:
            return self._files.list_new(self._clock())

    def pending(self) -> int:
        return len(self._ends())

    def backlog(self) -> Backlog:
        """The files and bytes that are recorded and not ingested."""
        with self._lock:
            pending = self._pending()
        return Backlog("files", len(pending), sum(f.size for f in pending))

    def has_ingested_all(self) -> bool:
        return not self.pending()

    def ingest(self) -> bool:
        if not (ends := self._ends()):
            return False
        self.ingest_up_to(ends[0])
        return True

    def ingest_up_to(self, end: int) -> None:
        """Commit the recorded files up to sequence ``end`` as bronze's next batch.

        Raises FileChangedError if a file has changed since it was recorded. A file that cannot be
        read is set aside after ``READ_ATTEMPTS``.
        """
        attempt, start = 1, self.position
        while True:
            files = self._readable(start, end)
            try:
                self._commit(files, start, end)
                return
            except READ_FAILURES:
                if self.position > start:
                    raise  # bronze has committed the batch, which must not be committed twice
                # A failed task does not name its file, so find the file.
                if attempt < READ_ATTEMPTS:
                    attempt += 1
                    continue
                with self._lock:
                    if not self._files.set_unreadable_aside(files, self._clock()):
                        raise

    @property
    def remark(self) -> str | None:
        files, folder = self._files, self._files.source.path
        if files.unnamed:
            return (
                f"{folder} has names that are not UTF-8, so no log can hold them, and they are not "
                f"read: {some_of(files.unnamed)}; rename them"
            )
        return None

    @property
    def set_aside(self) -> int:
        return self.log.set_aside

    def skip(self, wanted: SkipRequest) -> None:
        with self._lock:
            files = map(self.log.get, wanted.sequences)
            aside = [file for file in files if file is not None and file.status == "set_aside"]
            skipped = [replace(file, status="skipped", reason=wanted.reason) for file in aside]
            self.log.append(skipped, self._clock())

    def _pending(self) -> Sequence[LoggedFile]:
        """The recorded files that are not ingested."""
        return self._files.pending(self._position)

    def _ends(self) -> list[int]:
        """The sequences at which the next micro-batches may end."""
        with self._lock:
            pending = self._pending()
        max_files, max_bytes = self.limits
        return list(batch_ends(pending, max_files=max_files, max_bytes=max_bytes))

    def _readable(self, start: int, end: int) -> Sequence[LoggedFile]:
        """As ``FilesIntake.readable``. Raises LandingAwayError if the whole folder is gone."""
        with self._lock:
            try:
                return self._files.readable(start, end)
            except FileChangedError:
                self._files.require_mounted(end - start)
                # The disk may have come back between the two looks at the folder.
                return self._files.readable(start, end)

    def _commit(self, files: Sequence[LoggedFile], start: int, end: int) -> None:
        def verify() -> None:
            self._readable(start, end)

        records = records_of(self._files.landing, self._files.source, files)
        arrived = min((file.seen for file in files), default=None)
        reached = BatchEnd({"sequence": end}, arrived=arrived)
        self._bronze.ingest(records, reached, self._clock(), verify)
        with self._lock:
            self._position = end


def batch_ends(pending: Iterable[LoggedFile], *, max_files: int, max_bytes: int) -> Iterator[int]:
    """The sequences at which batches over ``pending`` end. Each batch is within both bounds, but
    has at least one file."""
    files = size = last = 0
    for file in pending:
        if files and (files + 1 > max_files or size + file.size > max_bytes):
            yield last
            files = size = 0
        files, size, last = files + 1, size + file.size, file.sequence
    if files:
        yield last
