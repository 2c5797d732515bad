"""Hours of event time that are final, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
FORMAT = "%Y-%m-%dT%H:%M:%S"
"""The format of a key: the start of the hour in UTC, as Airflow's partition mappers expect it."""
_MOST = 24 * 366
"""The most keys at a time: a watermark may jump by years, as with one event in a new topic."""


def key(start: datetime) -> str:
    return start.astimezone(UTC).strftime(FORMAT)


def of(text: str) -> tuple[datetime, datetime]:
    """Start and end of the hour that a key names. Raises ValueError."""
    start = datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
    return start, start + HOUR


def whole(time: datetime) -> datetime:
    """The end of the last hour that is over at ``time``."""
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def between(last: datetime | None, until: datetime) -> Sequence[str]:
    """The keys of the hours from ``last`` to ``until``, which are both ends of hours. Without
    ``last``, only the key of the last hour: no consumer waits for older ones."""
    if last is None:
        last = until - HOUR
    count = min((until - last) // HOUR, _MOST)
    return [key(until - HOUR * back) for back in range(count, 0, -1)]
