"""Hours and days of event time: their keys, and which of them are due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class Period:
    """Hours or days in UTC. ``format`` is that of a key, which names a period by its start, as
    Airflow's partition mappers expect it."""

    name: str
    length: timedelta
    format: str

    def key(self, start: datetime) -> str:
        return start.astimezone(UTC).strftime(self.format)

    def of(self, key: str) -> tuple[datetime, datetime]:
        """Start and end of the period that a key names. Raises ValueError."""
        start = datetime.strptime(key, self.format).replace(tzinfo=UTC)
        return start, start + self.length

    def whole(self, time: datetime) -> datetime:
        """The end of the last period that is over at ``time``."""
        return _EPOCH + (time - _EPOCH) // self.length * self.length

    def start(self, end: datetime) -> datetime:
        """The start of the period to which a result that ends at ``end`` belongs. A result that
        ends with a period belongs to it."""
        return self.whole(end - _MICRO)

    def due(
        self,
        changed: Collection[datetime],
        present: Collection[datetime],
        before: datetime | None,
        now: datetime,
    ) -> Sequence[datetime]:
        """The starts of the periods that must be reported, the oldest first.

        ``before`` and ``now`` are the times up to which results were final at the last report, and
        are final now. Both collections have starts of hours: ``changed`` those of which a final row
        has changed since the last report, ``present`` those that have a final row. A period is due
        if it was final before and has changed, or if it has become final and has a row. Without
        ``before``, only the last period with a row is due: no consumer waits for older ones.
        """
        end = self.whole(now)
        final = sorted({self.whole(each) for each in present if self.whole(each) < end})
        if before is None:
            return final[-1:]
        began = self.whole(before)
        corrected = {self.whole(each) for each in changed if self.whole(each) < min(began, end)}
        return sorted(corrected) + [each for each in final if each >= began]


HOUR = Period("hour", timedelta(hours=1), "%Y-%m-%dT%H:%M:%S")
DAY = Period("day", timedelta(days=1), "%Y-%m-%d")
PERIODS = {each.name: each for each in (HOUR, DAY)}
