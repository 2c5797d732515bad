"""Gold: windows by event time, rows that are late for them, and the fold of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.measures import measure
from tests.oracle.parse import EPOCH
from tests.oracle.rules import Arrival, Closing, GoldRules, Happening, OtherDecision, Replay, Row

Window = tuple[datetime, datetime]
Group = tuple[Window, tuple[Any, ...]]


class GoldTable:
    """One gold table, while its silver rows are processed."""

    def __init__(self, name: str, rules: GoldRules) -> None:
        self.name = name
        self.rules = rules
        self.closed: datetime | None = None
        self.loaded: Mapping[tuple[int, int], Arrival] = {}
        self.late: list[Row] = []
        self.groups: dict[Group, list[Row]] = defaultdict(list)
        self.revisions: Counter[Group] = Counter()

    def fill(
        self,
        rows: list[Row],
        happenings: Sequence[Happening],
        loaded: Mapping[tuple[int, int], Arrival],
    ) -> None:
        """Folds the rows that each happening saw before the happening, and the other rows after the
        last one. ``loaded`` has the arrivals of records of loads, by position."""
        self.loaded = loaded
        for number, happening in enumerate(happenings, 1):
            if isinstance(happening, OtherDecision):
                continue
            pending = []
            for row in rows:
                place = row["_partition"], row["_offset"]
                is_before = place in loaded and loaded[place].happenings < number
                if is_before or (place not in loaded and happening.saw(*place)):
                    self.take(row)
                else:
                    pending.append(row)
            if isinstance(happening, Closing):
                self.close(happening)
            elif happening.table == self.name:
                self.replay(happening, number)
            rows = pending
        for row in rows:
            self.take(row)

    def replay(self, replay: Replay, number: int) -> None:
        """Folds late pairs. A result that changes has the next revision; a new one has none."""
        before: dict[Group, Row | None] = {}
        for pair in self.late:
            key = self.key(pair)
            by = dict(zip(self.rules.by, key, strict=True))
            arrival = self.loaded.get((pair["_partition"], pair["_offset"]))
            is_meant = replay.load is None or (arrival and arrival.load == replay.load)
            if pair["replayed"] is None and is_meant and replay.means(pair, by):
                pair["replayed"] = number
                group = (pair["window_start"], pair["window_end"]), key
                before.setdefault(group, self.values(group) if group in self.groups else None)
                self.groups[group].append(pair)
        for group, values in before.items():
            self.revisions[group] += values is not None and self.values(group) != values

    def close(self, closing: Closing) -> None:
        ends = [end for (_, end), _ in self.groups]
        given = closing.through
        through = given.get(self.name) if given is not None else max(ends, default=None)
        if through is not None:
            self.closed = max(through, self.closed or through)

    def take(self, row: Row) -> None:
        if self.rules.where is not None and not self.rules.where(row):
            return
        key = self.key(row)
        for window in windows(row["_event_time"], self.rules.size, self.rules.every):
            late = self.lateness(row, window[1])
            if late is None:
                self.groups[window, key].append(row)
            else:
                ends = {"window_start": window[0], "window_end": window[1]}
                self.late.append(row | ends | late | {"replayed": None})

    def key(self, row: Row) -> tuple[Any, ...]:
        return tuple(compute(row) for compute in self.rules.by.values())

    def lateness(self, row: Row, end: datetime) -> Row | None:
        """None for a pair on time. A pair that is late by both rules has the reason ``late``. For a
        window that was closed early, ``late_by`` is negative, or null if the row was in order."""
        clock = row["_clock"]
        late_by = None if clock is None else clock - (end + self.rules.allowed_lateness)
        if late_by is not None and late_by >= timedelta(0):
            return {"late_by": late_by, "reason": "late"}
        if self.closed is not None and end <= self.closed:
            return {"late_by": late_by, "reason": "closed"}
        return None

    def rows(self, closing_clock: datetime | None) -> list[Row]:
        result = []
        for group in self.groups:
            window, _ = group
            ends = {"window_start": window[0], "window_end": window[1]}
            final = self.is_final(window[1], closing_clock)
            status = {"final": final, "revision": self.revisions[group]}
            result.append(ends | self.values(group) | status)
        return result

    def values(self, group: Group) -> Row:
        """The key, measures and columns of a result."""
        by, rows = dict(zip(self.rules.by, group[1], strict=True)), self.groups[group]
        values = by | {name: measure(m, rows) for name, m in self.rules.measures.items()}
        return values | {name: compute(values) for name, compute in self.rules.columns.items()}

    def is_final(self, end: datetime, closing_clock: datetime | None) -> bool:
        passed = closing_clock is not None and closing_clock >= end + self.rules.allowed_lateness
        return passed or (self.closed is not None and end <= self.closed)

    @property
    def replayed(self) -> int:
        return sum(pair["replayed"] is not None for pair in self.late)

    @property
    def folded(self) -> int:
        """The number of pairs that were on time."""
        return sum(len(rows) for rows in self.groups.values()) - self.replayed


def windows(time: datetime, size: timedelta, every: timedelta) -> Iterator[Window]:
    """All [start, start + size) that contain ``time``, the latest first."""
    since_epoch = time - EPOCH
    start = since_epoch // every * every
    while start + size > since_epoch:
        yield EPOCH + start, EPOCH + start + size
        start -= every
