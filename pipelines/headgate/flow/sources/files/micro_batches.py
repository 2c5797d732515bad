"""Micro-batches over a landing folder: ranges of the files log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.log import FilesLog, LoggedFile
from headgate.flow.sources.files.parts import records_of
from headgate.flow.sources.micro_batches import (
    BatchEnd,
    MicroBatchSource,
    SourceBatch,
    SourceContext,
)
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.payloads.bronze import BronzePayload

LIST_EVERY = 1.0  # seconds between listings of the landing folder
SETTLING = 0.25  # seconds between listings while files are settling


@dataclass(frozen=True)
class FilesRange:
    """The recorded files with the sequences ``(start, end]``."""

    start: int
    end: int


class FilesMicroBatches(MicroBatchSource[FilesRange]):
    """Positions are sequences. Listing and reading run on different threads. None of them waits for
    the other: a listing may not return, for example if a server of files is down."""

    every = LIST_EVERY

    def __init__(self, log: FilesLog, context: SourceContext) -> None:
        self.log = log
        self._files = FilesIntake(context.source, log)
        self._context = context
        self._clock = context.clock

    @property
    def limits(self) -> tuple[int, int]:
        """The most files and bytes of a batch."""
        source = self._files.reads
        return source.max_files_per_batch, source.max_bytes_per_batch

    def poll(self, at: BronzePayload, *, final: bool) -> None:
        """List new files. ``final``: wait for the files that are settling now, no longer than
        ``settle``. The next run reads files that appear or grow meanwhile: a producer that never
        pauses must not keep this run from its batches."""
        settling = self.list_new()
        ends = self._context.monotonic() + self._files.reads.settle.total_seconds() + SETTLING
        while final and settling and self._context.monotonic() < ends:
            self._context.check()
            time.sleep(SETTLING)
            settling &= self.list_new()

    def list_new(self) -> Set[str]:
        """Record new files that have settled. Returns the paths of those that are still
        settling."""
        return self._files.list_new(self._clock())

    def pending(self, at: BronzePayload) -> int:
        return len(list(self._ranges(at)))

    def backlog(self, at: BronzePayload) -> Backlog:
        """The files and bytes that are recorded and not ingested."""
        pending = self._pending(sequence_of(at))
        return Backlog("files", len(pending), sum(f.size for f in pending))

    def next_range(self, at: BronzePayload) -> FilesRange | None:
        return next(self._ranges(at), None)

    def read(self, planned: FilesRange, now: datetime) -> SourceBatch:
        """Raises FileChangedError if a file has changed since it was recorded."""
        files = self._readable(planned)
        records = records_of(self._files.landing, self._files.reads, files)
        arrived = min((file.seen for file in files), default=None)
        end = BatchEnd({"sequence": planned.end}, arrived=arrived)
        return SourceBatch(records, end, lambda: self._verify(planned))

    def failed(self, planned: FilesRange, error: Exception, *, is_last: bool) -> FilesRange | None:
        """A failed task does not name its file. So at last, look for files that cannot be read, and
        set them aside."""
        if not is_last:
            return None
        files = self._readable(planned)
        return planned if self._files.set_unreadable_aside(files, self._clock()) else None

    @property
    def remark(self) -> str | None:
        files, folder = self._files, self._files.reads.path
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
        files = map(self.log.get, wanted.sequences)
        aside = [file for file in files if file is not None and file.status == "set_aside"]
        skipped = [replace(file, status="skipped", reason=wanted.reason) for file in aside]
        self.log.append(skipped, self._clock())

    def _pending(self, after: int) -> Sequence[LoggedFile]:
        """The recorded files after a sequence."""
        return self._files.pending(after)

    def _ranges(self, at: BronzePayload) -> Iterator[FilesRange]:
        """The ranges of the next micro-batches."""
        start, (max_files, max_bytes) = sequence_of(at), self.limits
        for end in batch_ends(self._pending(start), max_files=max_files, max_bytes=max_bytes):
            yield FilesRange(start, end)
            start = end

    def _readable(self, planned: FilesRange) -> Sequence[LoggedFile]:
        """As ``FilesIntake.readable``. Raises LandingAwayError if the whole folder is gone."""
        start, end = planned.start, planned.end
        try:
            return self._files.readable(start, end)
        except FileChangedError:
            self._files.require_mounted(end - start)
            # The disk may have come back between the two looks at the folder.
            return self._files.readable(start, end)

    def _verify(self, planned: FilesRange) -> None:
        self._readable(planned)


def sequence_of(at: BronzePayload) -> int:
    """The sequence up to which the files log was ingested."""
    return at.offsets.get("sequence", 0)


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
