"""One gold table of every operator, with its definition in plain Python. A new operator needs a
case here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from tests.oracle.calendar import window_of
from tests.oracle.sessions import bounds, sessions

DAY, HOUR, MICRO = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ORIGIN = datetime(2018, 10, 1, 0, 3, 20, tzinfo=UTC)
NO_TIME = timedelta(0)
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """A row that a table reads. ``order`` is its log, the stream or a load, and its place there; it
    decides between events with the same time."""

    id: str
    at: datetime
    site: str | None
    values: Values
    order: tuple[int, ...] = ()
    arrived: datetime = EPOCH


@dataclass(frozen=True)
class Pair:
    """An event and a result that it belongs to. The pair is late if the watermark at arrival is at
    or past ``late_from``, or if a drain has closed results up to ``closed_by``; with None, never.
    """

    event: Event
    bounds: tuple[Any, ...]
    late_from: datetime | None = None
    closed_by: datetime | None = None


@dataclass(frozen=True)
class Result:
    """``end``: the result is final once the watermark, less the allowed lateness, is at or past it;
    with None, never."""

    bounds: tuple[Any, ...]
    site: str | None
    end: datetime | None
    events: Sequence[Event]


@dataclass(frozen=True)
class Case(ABC):
    """The gold table ``table``, which has the key ``kind`` of an operator. ``keys`` are keys of the
    table in the declaration. ``columns`` are those of its bounds; the first identifies a result.
    With ``reads``, it is a rollup of the case with this name. It ``has_ranges`` if results have a
    begin and an end: then rows may be late, and replays and backfills correct them."""

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ("window_start", "window_end")
    has_ranges: ClassVar[bool] = True

    table: str
    keys: str
    lateness: timedelta = NO_TIME
    reads: str | None = None
    time: str = "event"
    is_by_site: bool = True

    def takes(self, event: Event) -> bool:
        """The condition ``where`` of the table."""
        return True

    @property
    def is_corrected(self) -> bool:
        """Whether a backfill of a range of event time computes results again."""
        return self.has_ranges and self.time == "event"

    def time_of(self, event: Event) -> datetime:
        return event.at if self.time == "event" else event.arrived

    @abstractmethod
    def pairs(self, event: Event) -> Iterable[Pair]:
        """The results of an event."""

    @abstractmethod
    def end_of(self, of: tuple[Any, ...]) -> datetime | None:
        """``Result.end`` of the result with some bounds."""

    def results(self, pairs: Iterable[Pair]) -> Iterable[Result]:
        """The results of the pairs that are included."""
        found: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
        for pair in pairs:
            found[pair.bounds, self.site_of(pair.event)].append(pair.event)
        for (of, site), events in found.items():
            yield Result(of, site, self.end_of(of), events)

    def site_of(self, event: Event) -> str | None:
        return event.site if self.is_by_site else None

    def declaration(self) -> str:
        """The table in the section ``gold``."""
        lateness = f"{self.lateness // timedelta(seconds=1)} s"
        return DECLARED.format(
            table=self.table,
            reads=self.reads or "clean",
            keys=self.keys.format(lateness=f"allowed_lateness: {lateness}"),
            by="site" if self.is_by_site else "",
            measures=MEASURES if self.reads is None else MEASURES_OF_ROLLUP,
        )

    def values(self, events: Sequence[Event], more: int = 0) -> Values:
        """The measures of a result. ``more`` is added to each level."""
        if self.reads is not None:
            totals = [e.values["total"] for e in events if e.values["total"] is not None]
            counts = [e.values["events"] for e in events]
            return {"rows": len(events), "events": sum(counts), "total": total(totals)}
        in_order = sorted(events, key=lambda e: (e.at, e.order))
        levels = [e.values["level"] for e in in_order if e.values["level"] is not None]
        return {
            "events": len(events),
            "total": total(level + more for level in levels),
            "newest": levels[-1] if levels else None,
            "levels": len(set(levels)),
        }


def total(numbers: Iterable[int]) -> int | None:
    found = [*numbers]
    return sum(found) if found else None


DECLARED = """
  {table}:
    from: {reads}
    {keys}
    by: [{by}]
    measures: {{{measures}}}
"""
SUM = "sum(level)"
MEASURES = f"events: count(*), total: {SUM}, newest: last(level), levels: count_distinct(level)"
MEASURES_OF_ROLLUP = "rows: count(*), events: sum(events), total: sum(total)"


class Windows(Case):
    """Windows with bounds that depend on the time of an event alone."""

    @abstractmethod
    def windows(self, at: datetime) -> Iterable[tuple[Any, ...]]:
        """The bounds of the windows that contain a time."""

    def pairs(self, event: Event) -> Iterable[Pair]:
        for of in self.windows(self.time_of(event)):
            yield Pair(event, of, of[1] + self.lateness, of[1])

    def end_of(self, of: tuple[Any, ...]) -> datetime | None:
        end: datetime = of[1]
        return end


@dataclass(frozen=True)
class Hopping(Windows):
    kind = "hopping"
    size: timedelta = HOUR
    every: timedelta = HOUR
    offset: timedelta = NO_TIME

    def windows(self, at: datetime) -> Iterable[tuple[Any, ...]]:
        start = (at - EPOCH - self.offset) // self.every * self.every + EPOCH + self.offset
        while start + self.size > at:
            yield start, start + self.size
            start -= self.every


class Tumbling(Hopping):
    kind = "tumbling"


@dataclass(frozen=True)
class Calendar(Windows):
    kind = "calendar"
    unit: str = "day"
    zone: str = "Europe/Berlin"

    def windows(self, at: datetime) -> Iterable[tuple[Any, ...]]:
        yield window_of(at, self.unit, self.zone)


@dataclass(frozen=True)
class Session(Case):
    kind = "session"
    gap: timedelta = HOUR

    def takes(self, event: Event) -> bool:
        return self.reads is not None or (event.values["level"] or 0) > 0

    def pairs(self, event: Event) -> Iterable[Pair]:
        # An event in time may come until the moment after the lateness, as nothing it joins ends
        # before the gap after it.
        own, after = (event.at, event.at + self.gap), event.at + MICRO
        yield Pair(event, own, after + self.lateness, after)

    def end_of(self, of: tuple[Any, ...]) -> datetime | None:
        end: datetime = of[1] + MICRO
        return end

    def results(self, pairs: Iterable[Pair]) -> Iterable[Result]:
        by_site: dict[str | None, list[Event]] = defaultdict(list)
        for pair in pairs:
            by_site[self.site_of(pair.event)].append(pair.event)
        for site, events in by_site.items():
            for session in sessions(events, time_of, self.gap):
                of = bounds(session, time_of, self.gap)
                yield Result(of, site, self.end_of(of), session)


def time_of(event: Event) -> datetime:
    return event.at


class Running(Case):
    kind = "running"
    columns = ()
    has_ranges = False

    def pairs(self, event: Event) -> Iterable[Pair]:
        yield Pair(event, ())

    def end_of(self, of: tuple[Any, ...]) -> datetime | None:
        return None


@dataclass(frozen=True)
class Slots(Windows):
    """The toy (tests/toys/slots.py)."""

    kind = "slots"
    columns = ("slot_start", "slot_end", "slot")
    every: timedelta = field(default=7 * HOUR)

    def windows(self, at: datetime) -> Iterable[tuple[Any, ...]]:
        number = (at - ORIGIN) // self.every
        start = ORIGIN + number * self.every
        yield start, start + self.every, number


@dataclass(frozen=True)
class Count(Case):
    """Here, ``window_offset`` is the id of the first event. A window that is full is final at any
    time."""

    kind = "count"
    columns = ("window_offset", "window_partition", "window_item", "window_rows")
    has_ranges = False
    size: int = 7

    def pairs(self, event: Event) -> Iterable[Pair]:
        yield Pair(event, ())

    def end_of(self, of: tuple[Any, ...]) -> datetime | None:
        return EPOCH if of[-1] == self.size else None

    def results(self, pairs: Iterable[Pair]) -> Iterable[Result]:
        logs: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
        for event in sorted((pair.event for pair in pairs), key=lambda e: e.order):
            logs[event.order[0], self.site_of(event)].append(event)
        for (_, site), events in logs.items():
            for first in range(0, len(events), self.size):
                window = events[first : first + self.size]
                of = window[0].id, 0, 0, len(window)
                yield Result(of, site, self.end_of(of), window)


CASES: tuple[Case, ...] = (
    Tumbling(
        "tumbling",
        "window: {{tumbling: 6 hours}}\n    {lateness}",
        5 * HOUR,
        size=6 * HOUR,
        every=6 * HOUR,
    ),
    Hopping(
        "hopping",
        "window: {{hopping: {{size: 12 hours, every: 4 hours, offset: 35 min}}}}\n    {lateness}",
        8 * HOUR,
        size=12 * HOUR,
        every=4 * HOUR,
        offset=timedelta(minutes=35),
    ),
    Calendar(
        "calendar",
        "window: {{calendar: {{unit: day, zone: Europe/Berlin}}}}\n    {lateness}",
        6 * HOUR,
    ),
    Session(
        "session",
        "window: {{session: 150 minutes}}\n    where: level > 0\n    {lateness}",
        7 * HOUR,
        gap=timedelta(minutes=150),
    ),
    Running("running", "running: true"),
    Slots("slots", "slots: {{every: 7 hours, origin: '2018-10-01T00:03:20'}}"),
    Count("count", "window: {{count: 7}}"),
    Tumbling(
        "arrival",
        "window: {{tumbling: 30 minutes, time: arrival}}",
        time="arrival",
        size=HOUR / 2,
        every=HOUR / 2,
    ),
    # Gold tables that read gold tables.
    Calendar(
        "weeks",
        "window: {{calendar: {{unit: week, zone: Europe/Berlin}}}}\n    {lateness}",
        6 * HOUR,
        reads="calendar",
        is_by_site=False,
        unit="week",
    ),
    Session(
        "stretches",
        "window: {{session: 8 hours}}\n    {lateness}",
        8 * HOUR,
        reads="session",
        gap=8 * HOUR,
    ),
)
