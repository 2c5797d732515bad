"""Which results some rows have: the definition of each kind of operator.

A result has a time at which it is decided: no row at or after this time changes it. It is computed
once the output watermark has passed this time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tests.property.inputs.logs import Row

LEFT, RIGHT = "a", "b"
Results = Mapping[str, tuple[int, str]]
"""The time at which it is decided, and the value, of each result, by its identity."""


class Definition(Protocol):
    def results(self, rows: Collection[Row]) -> Results: ...

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        """Whether one more row may change a result, which has the ids of its rows. ``rows`` has all
        rows by their ids."""


@dataclass(frozen=True)
class Union:
    """Each row is a result."""

    def results(self, rows: Collection[Row]) -> Results:
        return {row.id: (row.time, row.key) for row in rows}

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        return result == row.id


@dataclass(frozen=True)
class Join:
    """Pairs of a left and a right row of one key, with ``low <= right - left <= high``. Kept
    rows without a partner are results, too: those of ``keeps``."""

    low: int
    high: int
    keeps: frozenset[str] = frozenset()

    def results(self, rows: Collection[Row]) -> Results:
        found, partners = {}, set()
        left, right = _sides(rows)
        for one in left:
            for other in right:
                if self._meets(one, other):
                    found[f"{one.id} {other.id}"] = max(one.time, other.time), one.key
                    partners |= {one.id, other.id}
        for row in rows:
            if row.source in self.keeps and row.id not in partners:
                found[row.id] = self._decided(row), row.key
        return found

    def _meets(self, left: Row, right: Row) -> bool:
        return left.key == right.key and self.low <= right.time - left.time <= self.high

    def _decided(self, row: Row) -> int:
        """When no row that comes can be a partner: at the greatest time of one, and not before the
        row itself."""
        last = self.high if row.source == LEFT else -self.low
        return row.time + max(last, 0)

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        ids = result.split()
        if row.id in ids:
            return True
        (one,) = (rows[id_] for id_ in ids[:1])
        if len(ids) > 1 or one.source == row.source:
            return False
        return self._meets(*((one, row) if one.source == LEFT else (row, one)))


@dataclass(frozen=True)
class AsOf:
    """Each left row with the last right row of its key at or before it, at most ``within``
    earlier."""

    within: int

    def results(self, rows: Collection[Row]) -> Results:
        left, right = _sides(rows)
        found = {}
        for one in left:
            known = [r for r in right if self._meets(one, r)]
            last = max(known, key=lambda r: (r.time, r.id), default=None)
            found[one.id] = one.time, last.id if last else ""
        return found

    def _meets(self, left: Row, right: Row) -> bool:
        return left.key == right.key and 0 <= left.time - right.time <= self.within

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        return result == row.id or (row.source == RIGHT and self._meets(rows[result], row))


@dataclass(frozen=True)
class Over:
    """For each row, how many rows of its key came before it, at most ``size`` earlier, of any
    input."""

    size: int

    def results(self, rows: Collection[Row]) -> Results:
        return {
            one.id: (one.time, str(sum(self._counts(one, each) for each in rows))) for one in rows
        }

    def _counts(self, one: Row, each: Row) -> bool:
        is_near = one.key == each.key and each.time >= one.time - self.size
        return is_near and (each.time, each.id) <= (one.time, one.id)

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        return result == row.id or self._counts(rows[result], row)


@dataclass(frozen=True)
class OverRows:
    """For each row, the rows of its key that came before it, of any input: the last ``most`` of
    them that are at most ``size`` earlier."""

    most: int
    size: int

    def results(self, rows: Collection[Row]) -> Results:
        in_order = sorted(rows, key=lambda row: (row.time, row.id))
        found = {}
        for one in in_order:
            near = [each.id for each in in_order if self._counts(one, each)]
            found[one.id] = one.time, " ".join(near[-self.most - 1 :])
        return found

    def _counts(self, one: Row, each: Row) -> bool:
        is_near = one.key == each.key and each.time >= one.time - self.size
        return is_near and (each.time, each.id) <= (one.time, one.id)

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        return result == row.id or self._counts(rows[result], row)


@dataclass(frozen=True)
class Windows:
    """All rows of a window of ``size``, as one result: what SQL over a window may look at."""

    size: int

    def results(self, rows: Collection[Row]) -> Results:
        found: dict[int, list[str]] = {}
        for row in rows:
            found.setdefault(row.time // self.size, []).append(row.id)
        return {
            str(n): ((n + 1) * self.size - 1, " ".join(sorted(ids))) for n, ids in found.items()
        }

    def affected(self, row: Row, result: str, rows: Mapping[str, Row]) -> bool:
        return int(result) == row.time // self.size


def _sides(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    each = list(rows)
    return [r for r in each if r.source == LEFT], [r for r in each if r.source == RIGHT]


DEFINITIONS: Mapping[str, Definition] = {
    "union": Union(),
    "join": Join(0, 4),
    "join of both directions": Join(-3, 2),
    "join of before": Join(-4, -1),
    "left join": Join(0, 4, frozenset({LEFT})),
    "left join of before": Join(-4, -1, frozenset({LEFT})),
    "full join": Join(-2, 3, frozenset({LEFT, RIGHT})),
    "as of": AsOf(5),
    "over": Over(3),
    "over rows": OverRows(2, 4),
    "windows": Windows(4),
}
