"""The savepoints that a running pipeline takes on a schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

from headgate.declaration.model import Pipeline
from headgate.declaration.settings import SavepointSchedule
from headgate.errors import HeadgateError
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create, prune, savepoints
from headgate.lake.storage.layout import Layout

NOTE = "scheduled"
AGAIN_AFTER = timedelta(minutes=1)
"""The delay after which a failed savepoint is tried again, unless its interval is shorter."""


class Schedule:
    """Runs in bronze's job. Nothing waits for a savepoint. A failure does not end the driver."""

    def __init__(self, layout: Layout, pipeline: Pipeline) -> None:
        self._layout = layout
        self._pipeline = pipeline
        self.trouble: str | None = None
        self._due: datetime | None = None

    def keep(self, now: datetime) -> Savepoint | None:
        """Take a savepoint if one is due, and delete those that need not be kept."""
        schedule = self._pipeline.savepoints
        if schedule is None:
            return None
        self._due = self._due or self._first(schedule, now)
        # A later due time was computed before the clock was set back, and is ignored.
        if now < self._due <= now + schedule.every:
            return None
        self._due = now + min(schedule.every, AGAIN_AFTER)
        try:
            taken = create(self._layout, self._pipeline, now, NOTE)
            self._due = now + schedule.every
            self._prune(schedule, now)
        except (HeadgateError, OSError) as error:
            self.trouble = f"no savepoint at {now:%F %T}Z: {error}"
            return None
        self.trouble = None
        return taken

    def _first(self, schedule: SavepointSchedule, now: datetime) -> datetime:
        """When the first savepoint of this driver is due, after those of earlier drivers.
        Savepoints of the future come from a clock that was ahead, and are ignored."""
        try:
            found = (s for s in savepoints(self._layout) if isinstance(s, Savepoint))
            taken = [s.created for s in found if s.created <= now]
        except (HeadgateError, OSError):
            return now  # taking a savepoint reports the same error
        return max(taken) + schedule.every if taken else now

    def _prune(self, schedule: SavepointSchedule, now: datetime) -> None:
        keep, keep_for = schedule.keep, schedule.keep_for
        prune(self._layout, self._pipeline, now, keep=keep, keep_for=keep_for)
