"""Decides which duplicates take the place of a rejected row, in plain Python over few rows.

To bronze, a later copy of a valid record is a duplicate, whether a producer has sent it again or a
replay has corrected it. A silver table whose rules have rejected all earlier copies takes the first
copy that meets the rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from headgate.lake.tables.replay import RecordPosition


@dataclass(frozen=True)
class Copy:
    """A row with the id ``id``. ``time`` is its event time in microseconds since 1970 UTC;
    ``corrects`` is the record that it corrects, if it comes from a replay. ``item`` is its place
    among the rows of its record; None for a whole record."""

    id: str
    position: RecordPosition
    time: int
    corrects: RecordPosition | None = None
    item: int | None = None


class Earlier:
    """Rows that may be earlier copies of others. Rows with one id and item are copies of each other
    if they are in one log and at most ``within`` microseconds of event time apart. If ``within`` is
    None, no row is a copy. A whole record is a copy if one of its items may be one."""

    def __init__(self, within: int | None, rows: Iterable[Copy] = ()) -> None:
        self._within = within
        self._rows: dict[tuple[int, str], list[Copy]] = defaultdict(list)
        self._items: dict[RecordPosition, set[int | None]] = defaultdict(set)
        for row in rows:
            self.add(row)

    @property
    def ids(self) -> set[str]:
        return {id_ for _, id_ in self._rows}

    def add(self, row: Copy) -> None:
        self._rows[row.position.log, row.id].append(row)
        self._items[row.position].add(row.item)

    @property
    def positions(self) -> Collection[RecordPosition]:
        return self._items.keys()

    def has_what_is_corrected_by(self, row: Copy) -> bool:
        items = self._items.get(row.corrects, set()) if row.corrects else set()
        return bool(items) if row.item is None else row.item in items

    def copies_of(self, row: Copy) -> Iterator[Copy]:
        if self._within is None:
            return
        for other in self._rows.get((row.position.log, row.id), ()):
            is_same = row.item in (None, other.item)
            is_near = is_same and abs(other.time - row.time) <= self._within
            if is_near and _is_before(other.position, row.position):
                yield other

    def has_copy_of(self, row: Copy) -> bool:
        return next(self.copies_of(row), None) is not None


def _is_before(one: RecordPosition, other: RecordPosition) -> bool:
    """Whether ``one`` is before ``other``, in one log. A replay is a step of its own: the rows that
    it finds in tables are earlier, and a later step finds all rows of the replay."""
    return one.partition != other.partition or one.offset < other.offset


def candidates(duplicates: Iterable[Copy], rejected: Earlier) -> Iterator[Copy]:
    """The duplicates of rejected rows. A replayed copy is a duplicate of the row that it corrects,
    even if their ids or times differ."""
    for row in duplicates:
        if rejected.has_what_is_corrected_by(row) or rejected.has_copy_of(row):
            yield row


def first_copies(passed: Iterable[Copy], kept: Earlier) -> Iterator[Copy]:
    """The first copy of each id and item, unless ``kept``, the rows of the table, has an earlier
    one. Each first copy is added to ``kept``. The other rows are duplicates."""
    for row in sorted(passed, key=lambda row: (row.position.partition, row.position.offset)):
        if not kept.has_copy_of(row):
            kept.add(row)
            yield row
