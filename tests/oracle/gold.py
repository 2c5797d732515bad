"""Gold: windows by event time, rows that are late for them, and the fold of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.measures import measure
from tests.oracle.parse import EPOCH
from tests.oracle.rules import Closing, GoldRules, Row

Window = tuple[datetime, datetime]


class GoldTable:
    """One gold table while its silver rows are judged."""

    def __init__(self, name: str, rules: GoldRules) -> None:
        self.name = name
        self.rules = rules
        self.closed: datetime | None = None
        self.late: list[Row] = []
        self.groups: dict[tuple[Window, tuple[Any, ...]], list[Row]] = defaultdict(list)

    def judge(self, rows: list[Row], drains: Sequence[Closing]) -> None:
        """Folds what each closing saw before it closes, and the rest after the last."""
        for closing in drains:
            pending = []
            for row in rows:
                if closing.saw(row["_partition"], row["_offset"]):
                    self.take(row)
                else:
                    pending.append(row)
            self.close(closing)
            rows = pending
        for row in rows:
            self.take(row)

    def close(self, closing: Closing) -> None:
        ends = [end for (_, end), _ in self.groups]
        given = closing.through
        through = given.get(self.name) if given is not None else max(ends, default=None)
        if through is not None:
            self.closed = max(through, self.closed or through)

    def take(self, row: Row) -> None:
        if self.rules.where is not None and not self.rules.where(row):
            return
        key = tuple(compute(row) for compute in self.rules.by.values())
        for window in windows(row["_event_time"], self.rules.size, self.rules.every):
            late = self.lateness(row, window[1])
            if late is None:
                self.groups[window, key].append(row)
            else:
                self.late.append(row | {"window_start": window[0], "window_end": window[1]} | late)

    def lateness(self, row: Row, end: datetime) -> Row | None:
        """None for a pair on time; a pair that is late by both rules is called late. A window
        that was closed early makes ``late_by`` negative, or null for a row in order."""
        clock = row["_clock"]
        late_by = None if clock is None else clock - (end + self.rules.allowed_lateness)
        if late_by is not None and late_by >= timedelta(0):
            return {"late_by": late_by, "reason": "late"}
        if self.closed is not None and end <= self.closed:
            return {"late_by": late_by, "reason": "closed"}
        return None

    def rows(self, closing_clock: datetime | None) -> list[Row]:
        result = []
        for (window, key), rows in self.groups.items():
            by = dict(zip(self.rules.by, key, strict=True))
            values = by | {name: measure(m, rows) for name, m in self.rules.measures.items()}
            derived = {name: compute(values) for name, compute in self.rules.columns.items()}
            ends = {"window_start": window[0], "window_end": window[1]}
            final = self.is_final(window[1], closing_clock)
            result.append(ends | values | derived | {"final": final})
        return result

    def is_final(self, end: datetime, closing_clock: datetime | None) -> bool:
        passed = closing_clock is not None and closing_clock >= end + self.rules.allowed_lateness
        return passed or (self.closed is not None and end <= self.closed)

    @property
    def folded(self) -> int:
        return sum(len(rows) for rows in self.groups.values())


def windows(time: datetime, size: timedelta, every: timedelta) -> Iterator[Window]:
    """All [start, start + size) that contain ``time``, the latest first."""
    since_epoch = time - EPOCH
    start = since_epoch // every * every
    while start + size > since_epoch:
        yield EPOCH + start, EPOCH + start + size
        start -= every
