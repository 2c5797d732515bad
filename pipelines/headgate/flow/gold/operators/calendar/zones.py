"""The rules of time zones: how far the clocks of a zone are ahead of UTC, and since when.

They are read from the installed package tzdata, never from the machine's files: ``ZoneInfo(name)``
would prefer these, and two machines could then compute different rows from one declaration.
"""

from __future__ import annotations

import hashlib
import struct
from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import pairwise
from typing import IO
from zoneinfo import ZoneInfo

from headgate.declaration.names import nearest

DAY = 86_400
CYCLE = 146_097 * DAY
"""400 years: the calendar then repeats, with the same days of the week."""
_PACKAGE = "tzdata"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SETTLED = (datetime(2100, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
"""By then, the clocks of each zone follow a rule that is the same every year. Only the end of
Ramadan, which some zones follow, is listed year by year, until 2087."""
# The header of a file: its version, and how many entries each of its parts has.
_HEADER = struct.Struct(">4sc15x6l")


@dataclass(frozen=True)
class ZoneRules:
    """``offsets`` are seconds ahead of UTC: the first one until the first of ``changes``, each of
    the others from a change on. ``changes`` are in seconds since 1970 UTC, in ascending order. They
    repeat every ``CYCLE`` from ``settled`` on, and are listed until one cycle later."""

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    settled: int

    @property
    def digest(self) -> str:
        """Equal for equal rules, whichever version of tzdata they are from."""
        text = ",".join(map(str, (*self.changes, "", *self.offsets)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def zone_names() -> frozenset[str]:
    """The names of all zones."""
    return frozenset((files(_PACKAGE) / "zones").read_text(encoding="utf-8").split())


def nearest_zone(text: str) -> str | None:
    """The zone of a city, if the text is one; otherwise the zone whose name is closest to the text.
    None if nothing is close."""
    cities = {name.rpartition("/")[2].lower(): name for name in sorted(zone_names())}
    return cities.get(text.replace(" ", "_").lower()) or nearest(text, zone_names())


def release() -> str:
    """The version of the installed package tzdata."""
    return version(_PACKAGE)


@cache
def rules_of(zone: str) -> ZoneRules:
    """The rules of a zone that is one of ``zone_names``."""
    with (files(_PACKAGE) / "zoneinfo" / zone).open("rb") as file:
        listed = _listed_changes(file)
        file.seek(0)
        clocks = ZoneInfo.from_file(file, key=zone)
    after = max(listed, default=0)
    settled = max(after + 100 * DAY, _SETTLED)
    changes, offsets = [], [_offset(clocks, min(listed, default=0) - 1)]
    for change in (*listed, *_later_changes(clocks, after, settled + CYCLE)):
        # A change may leave the offset as it is: only the name of the time is then another one.
        if (offset := _offset(clocks, change)) != offsets[-1]:
            changes.append(change)
            offsets.append(offset)
    return ZoneRules(tuple(changes), tuple(offsets), settled)


def _offset(clocks: ZoneInfo, time: int) -> int:
    local = (_EPOCH + timedelta(seconds=time)).astimezone(clocks)
    return (local.utcoffset() or timedelta()) // timedelta(seconds=1)


def _listed_changes(file: IO[bytes]) -> tuple[int, ...]:
    """The changes that a file lists (RFC 9636). ``zoneinfo`` reads them too, but keeps them to
    itself."""
    *_, isut, isstd, leaps, times, types, characters = _HEADER.unpack(file.read(_HEADER.size))
    # The first part has times of 32 bits, for old readers.
    file.seek(times * 5 + types * 6 + characters + leaps * 8 + isstd + isut, 1)
    *_, times, _, _ = _HEADER.unpack(file.read(_HEADER.size))
    return struct.unpack(f">{times}q", file.read(times * 8))


def _later_changes(clocks: ZoneInfo, after: int, until: int) -> Iterator[int]:
    """The changes by the rule that a file has for the time after the last change that it lists."""
    year = (_EPOCH + timedelta(seconds=after)).year + 1
    yield from _found_changes(clocks, after, _begin_of(year))
    found: dict[tuple[bool, int], list[int]] = {}
    while (begin := _begin_of(year)) < until:
        # The rule names a weekday of a month, so years with the same days have the same changes.
        alike = isleap(year), date(year, 1, 1).weekday()
        if alike not in found:
            changes = _found_changes(clocks, begin, _begin_of(year + 1))
            found[alike] = [change - begin for change in changes]
        yield from (begin + change for change in found[alike] if begin + change < until)
        year += 1


def _begin_of(year: int) -> int:
    return (date(year, 1, 1) - _EPOCH.date()).days * DAY


def _found_changes(clocks: ZoneInfo, after: int, until: int) -> Iterator[int]:
    """The changes in ``(after, until]``. There is at most one in a week."""
    for first, last in pairwise((*range(after, until, 7 * DAY), until)):
        before, end = first, last
        offset = _offset(clocks, before)
        if _offset(clocks, end) == offset:
            continue
        while end - before > 1:
            middle = (before + end) // 2
            if _offset(clocks, middle) == offset:
                before = middle
            else:
                end = middle
        yield end
