"""A source that is tried again for as long as it does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from headgate.driver.retry import Retry
from headgate.flow.sources.errors import UnreachableError
from headgate.flow.sources.micro_batches import MicroBatchSource
from headgate.lake.control.backlog import Backlog
from headgate.lake.control.outage import Outage, combined
from headgate.lake.control.skip_request import SkipRequest

POLL = 0.25  # seconds between two calls of ``waits``


class AwaitedSource(MicroBatchSource):
    """Opens a source with ``open_``, and tries each request again that fails with UnreachableError.

    While the source does not answer, it has no pending batch: so the driver, its other sources, its
    requests and its loads go on, and no thread waits. Only ``begin`` and the final poll block; they
    call ``waits`` repeatedly, which raises if the driver must end. Each method raises
    UnreachableError if there was no answer for ``limit``.
    """

    def __init__(
        self,
        open_: Callable[[], MicroBatchSource],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        limit: timedelta | None = None,
        waits: Callable[[Outage], None] = lambda _: None,
    ) -> None:
        self._open, self._monotonic, self._waits = open_, monotonic, waits
        self._opened: MicroBatchSource | None = None
        # Brokers may list what they cannot deliver: an answer to one clears only its own outage.
        self._listing = Retry(clock, monotonic, limit)
        self._reading = Retry(clock, monotonic, limit)

    @property
    def inner(self) -> MicroBatchSource:
        """The source. Opens it at the first use."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def every(self) -> float:  # type: ignore[override]
        return self.inner.every

    def begin(self) -> None:
        """Open the source, however long that takes."""
        self._persist(lambda: self.inner)

    def poll(self, *, final: bool) -> None:
        if final:
            self._persist(lambda: self.inner.poll(final=True))
            return
        was_away = self._listing.outage is not None
        if self._listing.is_due and self._try_to_list() and was_away:
            self._reading.hasten()

    def pending(self) -> int:
        return self.inner.pending() if self.may_ingest else 0

    def ingest(self) -> bool:
        began = self._monotonic()
        try:
            has_ingested = self.inner.ingest()
        except UnreachableError as error:
            self._reading.failed(error, began)
            return False
        self._reading.succeeded()
        return has_ingested

    def backlog(self) -> Backlog:
        return self.inner.backlog()

    def has_ingested_all(self) -> bool:
        return self.inner.has_ingested_all()

    @property
    def may_ingest(self) -> bool:
        """Whether the source answers, or is due to be read again."""
        return self._listing.outage is None and self._reading.is_due

    @property
    def outage(self) -> Outage | None:
        return combined((self._listing.outage, self._reading.outage))

    @property
    def remark(self) -> str | None:
        return self.inner.remark

    @property
    def set_aside(self) -> int:
        return self.inner.set_aside

    def skip(self, wanted: SkipRequest) -> None:
        self.inner.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        self.inner.batch_took(took)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _try_to_list(self) -> bool:
        """Returns whether the source has answered."""
        return self._try(lambda: self.inner.poll(final=False))

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
        except UnreachableError as error:
            self._listing.failed(error, began)
            return False
        self._listing.succeeded()
        return True
