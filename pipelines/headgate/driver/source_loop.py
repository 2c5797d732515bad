"""The loop of a source: plans a range, reads it, tries again after a failure, commits to bronze.

A load of history is the same loop with another position and another way to commit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.driver.outages import Retry
from headgate.flow.bronze.batches import ScratchLostError
from headgate.flow.sources.errors import SourceUnreachableError
from headgate.flow.sources.micro_batches import MicroBatchSource, SourceBatch
from headgate.flow.sources.records import PartedRecords
from headgate.lake.control.driver_reports import Backlog, Outage, combined_outage
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

POLL = 0.25  # seconds between two calls of ``waits``
READ_ATTEMPTS = 3
"""The number of attempts to read a range."""
READ_FAILURES = (
    *(PySparkException, Py4JError, ScratchLostError),
    *(OSError, EOFError, zlib.error, pa.ArrowException),
)
"""The errors of a failed task, and of a failed read in the driver."""

OpenSource = Callable[[BronzePayload], MicroBatchSource[Any]]
"""Opens a source that continues at a position."""


class BatchWriter(Protocol):
    """Commits the batches of a source, or of a load, to ``table``."""

    @property
    def table(self) -> Table: ...

    def position(self, state: State) -> BronzePayload:
        """The position from which the source continues when the table has this state."""

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        """Commit the next batch. A batch without records advances the position. Raises
        CommitRefusedError or FencedError."""


class SourceLoop:
    """Opens a source with ``open_``. A request that fails with SourceUnreachableError is tried
    again.

    While the source does not answer, it has no pending batch: so the driver, its other sources, its
    requests and its loads go on, and no thread waits. Only ``begin`` and the final poll block; they
    call ``waits`` repeatedly, which raises if the driver must end. Each method raises
    SourceUnreachableError if there was no answer for ``limit``.
    """

    def __init__(
        self,
        open_: OpenSource,
        bronze: BatchWriter,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        limit: timedelta | None = None,
        waits: Callable[[Outage], None] = lambda _: None,
    ) -> None:
        self._open, self._bronze = open_, bronze
        self._clock, self._monotonic, self._waits = clock, monotonic, waits
        self._opened: MicroBatchSource[Any] | None = None
        self._at = BronzePayload()
        self._last: Any = None
        # Brokers may list what they cannot deliver: an answer to one clears only its own outage.
        self._listing = Retry(clock, monotonic, limit)
        self._reading = Retry(clock, monotonic, limit)

    @property
    def source(self) -> MicroBatchSource[Any]:
        """Opens the source at the first use, and commits its start."""
        if self._opened is None:
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
        return self.source.every

    def begin(self) -> None:
        """Open the source, however long that takes."""
        self._persist(lambda: self.source)

    def poll(self, *, final: bool) -> None:
        if final:
            self._persist(lambda: self.source.poll(self._at, final=True))
            return
        was_away = self._listing.outage is not None
        if self._listing.is_due and self._try_to_list() and was_away:
            self._reading.hasten()

    def pending(self) -> int:
        """The number of batches that wait; 0 while the source does not answer."""
        return self.source.pending(self._at) if self.may_ingest else 0

    def ingest(self, planned: Any = None) -> bool:
        """Read and commit the next batch, or the range ``planned``. Returns False if there was no
        input, or no answer."""
        began = self._monotonic()
        try:
            has_ingested = self._ingest(planned)
        except SourceUnreachableError as error:
            self._reading.failed(error, began)
            return False
        self._reading.succeeded()
        return has_ingested

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
                    raise  # bronze has committed the batch, which must not be committed twice
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
        state = self._bronze.table.refresh()
        self._at = self._bronze.position(state)
        return state.n

    def _commit(self, batch: SourceBatch, now: datetime) -> None:
        self._at = self._bronze.position(self._bronze.ingest(batch, now))

    def backlog(self) -> Backlog:
        return self.source.backlog(self._at)

    def has_ingested_all(self) -> bool:
        """Whether everything of the final poll was ingested."""
        return not self.source.pending(self._at)

    @property
    def may_ingest(self) -> bool:
        """Whether the source answers, or is due to be read again."""
        return self._listing.outage is None and self._reading.is_due

    @property
    def outage(self) -> Outage | None:
        """Why the source does not answer; None if it does."""
        return combined_outage((self._listing.outage, self._reading.outage))

    @property
    def remark(self) -> str | None:
        return self.source.remark

    @property
    def set_aside(self) -> int:
        return self.source.set_aside

    def skip(self, wanted: SkipRequest) -> None:
        self.source.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        """Tell the source how long its last batch took, including gold."""
        if self._last is not None:
            self.source.batch_took(self._last, took)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _try_to_list(self) -> bool:
        """Returns whether the source has answered."""
        return self._try(lambda: self.source.poll(self._at, final=False))

    def _persist(self, ask: Callable[[], object]) -> None:
        """Ask until there is an answer. Raises what ``waits`` raises."""
        while not self._try(ask):
            while (outage := self._listing.outage) and not self._listing.is_due:
                self._waits(outage)
                time.sleep(POLL)

    def _try(self, ask: Callable[[], object]) -> bool:
        began = self._monotonic()
        try:
            ask()
        except SourceUnreachableError as error:
            self._listing.failed(error, began)
            return False
        self._listing.succeeded()
        return True
