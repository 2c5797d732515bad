"""The savepoints: how many, how old the newest is, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import UnreadableSavepoint, read_savepoint
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.samples import Samples
from headgate.lake.storage.files import Stat
from headgate.lake.storage.layout import Layout


@dataclass(frozen=True)
class _Taken:
    """A savepoint. ``size`` is that of its tables, ``took`` the time from its start until its
    document was written."""

    created: datetime
    size: int
    took: timedelta


class SavepointsPart(Reading):
    """Reads each document once."""

    name: ClassVar[str] = "savepoints"
    every: ClassVar[float] = 10.0

    def __init__(self, place: WatchedPipeline) -> None:
        self._layout = place.layout
        self._known: dict[Stat, _Taken | UnreadableSavepoint] = {}

    def read(self, samples: Samples, now: datetime) -> None:
        folder = Layout.savepoint("").rpartition("/")[0]
        stats = [s for s in self._layout.storage.list(folder) if s.path.endswith(".json")]
        found = ((stat, self._known.get(stat) or self._taken(stat)) for stat in stats)
        self._known = {stat: each for stat, each in found if each is not None}
        good = [each for each in self._known.values() if isinstance(each, _Taken)]
        samples.add("savepoints", len(self._known))
        samples.add("savepoints_damaged", len(self._known) - len(good))
        newest = max(good, key=lambda each: each.created, default=None)
        if newest is None:
            return
        samples.add("savepoint_timestamp_seconds", newest.created)
        samples.add("savepoint_age_seconds", (now - newest.created).total_seconds())
        samples.add("savepoint_size_bytes", newest.size)
        samples.add("savepoint_duration_seconds", newest.took.total_seconds())

    def _taken(self, stat: Stat) -> _Taken | UnreadableSavepoint | None:
        """None if it is deleted meanwhile."""
        found = read_savepoint(self._layout, stat.path.rpartition("/")[2].removesuffix(".json"))
        if not isinstance(found, Savepoint):
            return found
        took = max(stat.modified - found.created, timedelta())
        return _Taken(found.created, found.bytes, took)
