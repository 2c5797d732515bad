"""Days, weeks and months of a time zone, by their definition: a day begins at the first minute of
its local date. Clocks are changed at whole minutes since 1972."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def window_of(at: datetime, unit: str, zone: str) -> tuple[datetime, datetime]:
    """The begin and the end of the window that contains a time: of the day, the week or the month
    that has begun last."""
    local = at.astimezone(clocks(zone)).date()
    day = max(each for each in (local - DAY, local, local + DAY) if begin_of(each, zone) <= at)
    if unit == "day":
        first, following = day, day + DAY
    elif unit == "week":
        first = day - day.weekday() * DAY
        following = first + 7 * DAY
    else:
        first = day.replace(day=1)
        following = (first + 31 * DAY).replace(day=1)
    return begin_of(first, zone), begin_of(following, zone)


@cache
def begin_of(day: date, zone: str) -> datetime:
    """The first minute with this local date; if the clocks skip the date, with a later one."""
    at = datetime.combine(day, time(), UTC) - 15 * timedelta(hours=1)
    while at.astimezone(clocks(zone)).date() < day:
        at += MINUTE
    return at


@cache
def clocks(zone: str) -> ZoneInfo:
    """The rules of a zone in the package tzdata. ``ZoneInfo(zone)`` prefers the machine's files."""
    with (files("tzdata") / "zoneinfo" / zone).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)
