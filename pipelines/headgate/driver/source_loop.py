"""The loop of a source: plans a range, reads it, tries again after a failure, commits to bronze.

A load of history is the same loop with another position and another way to commit.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.commands import pipeline_command
from headgate.driver.job_input import JobInput
from headgate.driver.outages import Retry
from headgate.driver.source_hold import SourceHold
from headgate.errors import HeadgateError, first_line, said_by
from headgate.flow.bronze.batches import ScratchLostError
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.micro_batches import MicroBatchSource, SourceBatch
from headgate.flow.sources.records import PartedRecords
from headgate.lake.control.driver_reports import (
    Backlog,
    Outage,
    SourceReport,
    combined_outage,
)
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State

POLL = 0.25  # seconds between two calls of ``waits``
READ_ATTEMPTS = 3
"""The number of attempts to read a range."""
READ_FAILURES = (
    *(PySparkException, Py4JError, ScratchLostError),
    *(OSError, EOFError, zlib.error, pa.ArrowException),
)
"""The errors of a failed task, and of a failed read in the driver."""

_JAVA_CAUSE = re.compile(r"^(?:Caused by)?: ([\w.$]+)", re.MULTILINE)

OpenSource = Callable[[BronzePayload], MicroBatchSource[Any]]
"""Opens a source that continues at a position."""


HELD_FOR = 60.0  # seconds until a source is tried again that a person has to repair


def never(_: Exception) -> bool:
    return False


class BatchWriter(Protocol):
    """Commits the batches of a source, or of a load, to a bronze table. ``lock`` is held while a
    range is planned, read and committed: nothing else may move the position meanwhile."""

    @property
    def lock(self) -> AbstractContextManager[object]: ...

    def refresh(self) -> State:
        """The newest state of the table. Raises FencedError."""

    def position(self, state: State) -> BronzePayload:
        """The position from which the source continues when the table has this state."""

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        """Commit the next batch. A batch without records advances the position. Raises
        CommitRefusedError or FencedError."""


@dataclass(frozen=True)
class _Held(SourceHold):
    """A source that cannot be read. It is tried again at ``due`` (seconds of the monotonic clock).
    ``of`` are the requests that failed: those for a listing, or those for records."""

    of: Retry
    due: float


class SourceLoop(JobInput):
    """Opens a source with ``open_``. A request that fails with SourceUnreachableError is tried
    again. A request that fails for good ends the driver, unless ``holds`` says of the error that
    the source is held: then it is tried again after ``HELD_FOR``, and not in a run with ``limit``.

    While the source does not answer or is held, it has no pending batch: so the driver, its other
    sources, its requests and its loads go on. Only ``begin`` and the final poll block; they call
    ``waits`` repeatedly, which raises if the driver must end. Each method raises
    SourceUnreachableError if there was no answer for ``limit``.
    """

    def __init__(
        self,
        name: str,
        open_: OpenSource,
        bronze: BatchWriter,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        limit: timedelta | None = None,
        holds: Callable[[Exception], bool] = never,
        waits: Callable[[Outage], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self.name = name
        self._open, self._bronze = open_, bronze
        self._clock, self._monotonic, self._waits = clock, monotonic, waits
        self._holds, self._held_for = holds, math.inf if limit is not None else HELD_FOR
        self._opened: MicroBatchSource[Any] | None = None
        self._at = BronzePayload()
        self._last: Any = None
        # Brokers may list what they cannot deliver: an answer to one clears only its own outage.
        self._listing = Retry(clock, monotonic, limit)
        self._reading = Retry(clock, monotonic, limit)
        self._held: _Held | None = None

    @property
    def source(self) -> MicroBatchSource[Any]:
        """Opens the source at the first use, and commits its start."""
        if self._opened is None:
            with self._bronze.lock:
                self._refresh()
                source = self._open(self._at)
                try:
                    if source.start is not None:
                        self._commit(SourceBatch(PartedRecords(()), source.start), self._clock())
                except BaseException:
                    source.close()
                    raise
                self._opened = source
        return self._opened

    @property
    def every(self) -> float:
        return self._opened.every if self._opened else 1.0

    def begin(self) -> None:
        """Open the source, however long that takes."""
        self._persist(lambda: self.source)

    def poll(self, *, final: bool) -> None:
        if final:
            self._persist(lambda: self._list(final=True))
        elif self._listing.is_due and self._is_due:
            was_away = self._listing.outage is not None
            if self._try(lambda: self._list(final=False)) and was_away:
                self._reading.hasten()

    def _list(self, *, final: bool) -> None:
        source = self.source  # opened first: that takes the bronze stage, which comes before
        with self.listing_lock:
            source.poll(self._at, final=final)

    def pending(self) -> int:
        """The number of batches that wait; 0 while the source does not answer or is held."""
        return self._opened.pending(self._at) if self._opened and self.may_ingest else 0

    def ingest(self, planned: Any = None) -> bool:
        """Read and commit the next batch, or the range ``planned``. Returns False if there was no
        input, no answer, or the source is held."""
        done = list[bool]()
        with self._bronze.lock:
            if self._is_due:
                self._attempt(lambda: done.append(self._ingest(planned)), self._reading)
        return done == [True]

    def _ingest(self, planned: Any) -> bool:
        source, attempt = self.source, 1
        n = self._refresh()  # its rebuild may have replaced bronze
        if planned is None and (planned := source.next_range(self._at)) is None:
            return False
        while True:
            try:
                now = self._clock()
                self._commit(source.read(planned, now), now)
            except READ_FAILURES as error:
                if self._refresh() > n:
                    # Bronze has committed the batch, which must not be committed twice. What the
                    # stage has in memory lacks it, so the driver must end.
                    self._holds = never
                    raise
                is_last = attempt == READ_ATTEMPTS
                if (instead := source.failed(planned, error, is_last=is_last)) is not None:
                    planned = instead
                elif is_last:
                    raise
                else:
                    attempt += 1
            else:
                self._last = planned
                return True

    def _refresh(self) -> int:
        """Read the position. Returns bronze's batch id."""
        state = self._bronze.refresh()
        self._at = self._bronze.position(state)
        return state.n

    def _commit(self, batch: SourceBatch, now: datetime) -> None:
        self._at = self._bronze.position(self._bronze.ingest(batch, now))

    def has_ingested_all(self) -> bool:
        return self._opened is not None and not self._opened.pending(self._at)

    @property
    def may_ingest(self) -> bool:
        """Whether the source answers and is not held, or is due to be read again."""
        return self._listing.outage is None and self._reading.is_due and self._is_due

    @property
    def _is_due(self) -> bool:
        return self._held is None or self._monotonic() >= self._held.due

    @property
    def outage(self) -> Outage | None:
        """Why the source does not answer; None if it does, or if it is held."""
        if self._held is not None:
            return None
        return combined_outage((self._listing.outage, self._reading.outage))

    @property
    def failure(self) -> HeadgateError | None:
        """Why the source is held."""
        return self._held.error if self._held else None

    def backlog(self) -> Backlog:
        """The input that was found and is not ingested."""
        return self.source.backlog(self._at)

    def reports(self) -> Mapping[str, SourceReport]:
        source, held = self._opened, self._held
        failure = held.failure if held else None
        if source is None:
            return {self.name: SourceReport(None, self.outage, failure)}
        report = SourceReport(
            *(self.backlog(), self.outage, failure),
            remark=source.remark,
            set_aside=source.set_aside,
        )
        return {self.name: report}

    def skip(self, wanted: SkipRequest) -> None:
        with self.listing_lock:
            self.source.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        if self._last is not None:
            self.source.batch_took(self._last, took)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _persist(self, ask: Callable[[], object]) -> None:
        """Ask until there is an answer, or the source is held. Raises what ``waits`` raises."""
        while not self._try(ask) and self._held is None:
            while (outage := self._listing.outage) and not self._listing.is_due:
                self._waits(outage)
                time.sleep(POLL)

    def _try(self, ask: Callable[[], object]) -> bool:
        return self._attempt(ask, self._listing)

    def _attempt(self, ask: Callable[[], object], retry: Retry) -> bool:
        """Returns whether the source has answered, and is not held for what it has answered."""
        began = self._monotonic()
        try:
            try:
                ask()
            except SourceUnreachableError as error:
                retry.failed(error, began)
                return False
        except Exception as error:
            if not self._holds(error):
                raise
            self._hold(error, retry)
            return False
        retry.succeeded()
        if (held := self._held) is not None:
            # A source that could not be read may have nothing to read any more.
            is_idle = retry is self._listing and self._is_due and self.has_ingested_all()
            if held.of is retry or is_idle:
                self._held = None
        return True

    def _hold(self, error: Exception, retry: Retry) -> None:
        if not isinstance(error, HeadgateError):
            remedy = f"see what Spark said: {pipeline_command('logs', '--spark')}"
            error = SourceError(f"it cannot be read: {cause_of_failure(error)}", remedy)
        since = self._held.since if self._held else self._clock()
        self._held = _Held(error, since, retry, self._monotonic() + self._held_for)


def cause_of_failure(error: Exception) -> str:
    """The first line of an error. That of a JVM's error names only a method, so the class of the
    innermost cause follows it."""
    causes = _JAVA_CAUSE.findall(said_by(error))
    return f"{first_line(error)} ({causes[-1]})" if causes else first_line(error)
