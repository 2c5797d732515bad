"""The last part of the demo: a version of gold is held, released, and gold catches up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate.demo.feeding import Feeder
from headgate.demo.landing import Deliver
from headgate.demo.outlier import TABLE, outlier
from headgate.gates import documents
from headgate.gates.documents import Hold, Release

if TYPE_CHECKING:
    from headgate.storage.layout import Layout

BY = "the demo"
REASON = "a single bid by fax"
POLL = 0.1  # seconds
PATIENCE = 120.0
"""The demo continues after so many seconds in which no hold begins, or the hold does not end."""


@dataclass(frozen=True)
class Held:
    """The hold of a version, its release, and the seconds until the table was no longer held."""

    hold: Hold
    given: Release
    seconds: float


class HeldVersion(threading.Thread):
    """Delivers an outlier after all slices of the feeder, waits until gold is held, and releases
    it. Calls ``on_end`` in any case. ``found`` is None if nothing was held; ``failure`` is the
    error that ended the thread, if any."""

    def __init__(
        self, layout: Layout, deliver: Deliver, feeder: Feeder, on_end: Callable[[], None]
    ) -> None:
        super().__init__(name="held version", daemon=True)
        self.found: Held | None = None
        self.failure: Exception | None = None
        self._layout, self._deliver = layout, deliver
        self._feeder, self._on_end = feeder, on_end

    def begin(self) -> None:
        """Start the thread. Later calls do nothing."""
        if self.ident is None:
            self.start()

    def run(self) -> None:
        try:
            self._feeder.join()
            self._deliver(len(self._feeder.delivered), outlier(self._feeder.delivered[-1][1]))
            if self._until(is_held=True) and (hold := documents.held(self._layout, TABLE)):
                self._release(hold)
        except Exception as error:
            self.failure = error
        finally:
            self._on_end()

    def _release(self, hold: Hold) -> None:
        given = hold.release(BY, REASON, datetime.now(UTC))
        documents.release(self._layout, TABLE, given)
        began = time.monotonic()
        if self._until(is_held=False):
            self.found = Held(hold, given, time.monotonic() - began)

    def _until(self, *, is_held: bool) -> bool:
        """Wait until the table is held, or is not held. False if this takes too long."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if (documents.held(self._layout, TABLE) is not None) == is_held:
                return True
            time.sleep(POLL)
        return False
