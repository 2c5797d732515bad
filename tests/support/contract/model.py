"""What the tables of all cases should have, by their definitions, while a history goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.support.contract.cases import CASES, MICRO, Case, Event, Pair, Result, Values

Rows = Mapping[tuple[Any, ...], Values]
Watermarks = Mapping[str, datetime]
"""The watermarks of event times and of arrivals, by the time that a table uses; empty before the
first record."""


@dataclass
class LatePair:
    """``behind`` is how far the watermark at arrival was past the limit."""

    pair: Pair
    reason: str
    behind: float | None
    is_replayed: bool = False


class TableModel:
    """One table. ``above`` is the one that a rollup reads."""

    def __init__(self, case: Case, above: TableModel | None) -> None:
        self.case, self._above = case, above
        self.closed: datetime | None = None
        self.late: list[LatePair] = []
        self._included: list[Pair] = []
        self._corrected: set[tuple[Any, ...]] = set()

    def take(self, event: Event, clocks: Watermarks) -> None:
        """``clocks`` are the watermarks at arrival."""
        if self._above is not None or not self.case.takes(event):
            return
        clock = clocks.get(self.case.time)
        for pair in self.case.pairs(event):
            limit, closed_by = pair.late_from, pair.closed_by
            is_late = limit is not None and clock is not None and clock >= limit
            is_closed = self.closed is not None and closed_by is not None
            if is_late or (is_closed and closed_by <= self.closed):  # type: ignore[operator]
                in_order = clock is None or clock <= self.case.time_of(event)
                behind = None if in_order else (clock - limit).total_seconds()  # type: ignore[operator]
                self.late.append(LatePair(pair, "late" if is_late else "closed", behind))
            else:
                self._included.append(pair)

    def close(self, watermarks: Watermarks) -> None:
        """A drain closes the results that there are."""
        ends = [each.end for each in self._results(watermarks) if each.end is not None]
        self.closed = max((*ends, *([self.closed] if self.closed else [])), default=None)

    def replay(self, events: Iterable[Event] | None = None) -> None:
        """Late pairs are included: all, or those of some events."""
        of = None if events is None else {event.id for event in events}
        for each in self.late:
            if not each.is_replayed and (of is None or each.pair.event.id in of):
                each.is_replayed = True
                self._included.append(each.pair)

    def correct(self, begin: datetime, end: datetime, watermarks: Watermarks) -> None:
        """A backfill changes the values of final results inside of a range."""
        for result in self._results(watermarks):
            first, last = result.bounds[:2]
            if begin <= first and last <= end and self._is_final(result, watermarks):
                self._corrected.add(self._key(result))

    def rows(self, watermarks: Watermarks) -> Rows:
        """All rows, by key."""
        return {
            self._key(result): {
                **dict(zip(self.case.columns, result.bounds, strict=True)),
                **({"site": result.site} if self.case.is_by_site else {}),
                **self.case.values(result.events, int(self._key(result) in self._corrected)),
                "final": self._is_final(result, watermarks),
            }
            for result in self._results(watermarks)
        }

    def late_rows(self) -> Mapping[tuple[Any, ...], tuple[Any, ...]]:
        """By event and result: the reason, how late it was, and whether a replay has folded it."""
        return {
            (each.pair.event.id, *each.pair.bounds): (each.reason, each.behind, each.is_replayed)
            for each in self.late
        }

    def _results(self, watermarks: Watermarks) -> Sequence[Result]:
        pairs = self._included
        if self._above is not None:
            rows = self._above.final_rows(watermarks)
            pairs = [pair for row in rows for pair in self.case.pairs(row)]
        return [*self.case.results(pairs)]

    def final_rows(self, watermarks: Watermarks) -> Iterable[Event]:
        """As a rollup reads them."""
        for key, row in self.rows(watermarks).items():
            if row["final"]:
                at = row[self.case.columns[1]] - MICRO
                yield Event(str(key), at, row["site"], row)

    def _is_final(self, result: Result, watermarks: Watermarks) -> bool:
        if result.end is None:
            return False
        watermark = watermarks.get(self.case.time)
        is_passed = watermark is not None and watermark >= result.end + self.case.lateness
        return is_passed or (self.closed is not None and result.end <= self.closed)

    def _key(self, result: Result) -> tuple[Any, ...]:
        return (*result.bounds[:1], result.site)


class Model:
    """All tables, and the watermarks of the source."""

    def __init__(self) -> None:
        self.watermarks: dict[str, datetime] = {}
        self.tables: dict[str, TableModel] = {}
        for case in CASES:
            above = self.tables[case.reads] if case.reads else None
            self.tables[case.table] = TableModel(case, above)

    def deliver(self, events: Iterable[Event]) -> None:
        for event in events:
            for table in self.tables.values():
                table.take(event, self.watermarks)
            for time, at in (("event", event.at), ("arrival", event.arrived)):
                self.watermarks[time] = max(self.watermarks.get(time, at), at)

    def load(self, events: Sequence[Event]) -> None:
        """Events of a load move no watermark. At its end, their late pairs are folded."""
        for table in self.tables.values():
            for event in events:
                table.take(event, self.watermarks)
            table.replay(events)

    def drain(self) -> None:
        for table in self.tables.values():
            table.close(self.watermarks)

    def replay(self) -> None:
        for table in self.tables.values():
            table.replay()

    def correct(self, tables: Iterable[str], begin: datetime, end: datetime) -> None:
        for name in tables:
            self.tables[name].correct(begin, end, self.watermarks)
