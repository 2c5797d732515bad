"""An in-memory hash table of rows by a hash of their id.

It is a hash table with chains in NumPy arrays. The lowest bits of a key give its place. A place
points to its newest row, and each row points to the next older row of its place. The cost of a
batch depends on the number of its ids, and hardly on the number of rows in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_PLACES = 2  # for each row of the capacity
_LONG = 64  # steps along chains, before all keys are scanned instead
_ROOM = 1 << 10  # initial number of rows
_ROUNDS = 8  # of linking rows that share a place, before the others are sorted
_PART = 1 << 17  # rows linked at once: these fit the processor's cache
_NONE = -1


class IdIndex:
    """Rows of ``width`` integers. The lowest bits of a row's key must be evenly distributed."""

    def __init__(self, width: int) -> None:
        self._length = 0
        self._keys = np.empty(0, np.int64)
        self._columns = [np.empty(0, np.int64) for _ in range(width)]
        self._make_room(_ROOM)

    def __len__(self) -> int:
        return self._length

    def add(self, keys: Ints, columns: Sequence[Ints]) -> None:
        """Add rows under ``keys``; ``keys`` and each of ``columns`` have shape (n,)."""
        first, last = self._length, self._length + len(keys)
        if last > len(self._keys):
            self._make_room(1 << last.bit_length())
        self._keys[first:last] = keys
        for held, column in zip(self._columns, columns, strict=True):
            held[first:last] = column
        self._link(first, last)
        self._length = last

    def find(self, wanted: Ints) -> tuple[Ints, list[Ints]]:
        """Keys and columns of all rows with a key in ``wanted``, which has each key once."""
        found = self._find(wanted)
        return self._keys[found], [column[found] for column in self._columns]

    def column(self, number: int) -> Ints:
        """One column of all rows, in the order of ``keep``."""
        return self._columns[number][: self._length]

    def keep(self, kept: Flags) -> None:
        """Remove the rows that are not ``kept``, given in the order of ``column``."""
        places = np.flatnonzero(kept)
        for held in (self._keys, *self._columns):
            held[: len(places)] = held[places]
        self._length = len(places)
        self._link_all()

    def _find(self, wanted: Ints) -> Rows:
        row = self._newest[self._places(wanted)]
        found = [row[:0]]
        for _ in range(_LONG):
            here = row != _NONE
            row, wanted = row[here], wanted[here]
            if not len(row):
                return np.concatenate(found)
            found.append(row[self._keys[row] == wanted])
            row = self._older[row]
        # Chains are this long if a producer gives many records one id.
        crowd = np.isin(self._keys[: self._length], wanted)
        found = [rows[~crowd[rows]] for rows in found]
        return np.concatenate([*found, np.flatnonzero(crowd).astype(np.int32)])

    def _make_room(self, rows: int) -> None:
        self._keys = _larger(self._keys, rows)
        self._columns = [_larger(column, rows) for column in self._columns]
        # Four bytes per row: memory holds far fewer than 2^31 rows.
        self._newest = np.empty(_PLACES * rows, np.int32)
        self._older = np.empty(rows, np.int32)
        self._link_all()

    def _link_all(self) -> None:
        self._newest.fill(_NONE)
        self._link(0, self._length)

    def _link(self, first: int, last: int) -> None:
        """Add the rows [first, last), which are newer than all others, to the chains."""
        for begin in range(first, last, _PART):
            self._link_part(begin, min(begin + _PART, last))

    def _link_part(self, first: int, last: int) -> None:
        rows = np.arange(first, last, dtype=np.int32)
        places = self._places(self._keys[first:last])
        for _ in range(_ROUNDS):
            self._older[rows] = self._newest[places]
            self._newest[places] = rows
            # If several rows have one place, the last one is stored. The others follow.
            waiting = self._newest[places] != rows
            rows, places = rows[waiting], places[waiting]
            if not len(rows):
                return
        self._link_crowd(rows, places)

    def _link_crowd(self, rows: Rows, places: Ints) -> None:
        """As ``_link_part``, with a sort, for a producer that gives many records one id."""
        order = np.argsort(places)
        places, rows = places[order], rows[order]
        begins = np.concatenate([[True], places[1:] != places[:-1]])
        ends = np.concatenate([begins[1:], [True]])
        self._older[rows[1:]] = rows[:-1]
        self._older[rows[begins]] = self._newest[places[begins]]
        self._newest[places[ends]] = rows[ends]

    def _places(self, keys: Ints) -> Ints:
        return keys & (len(self._newest) - 1)


def _larger(array: Ints, room: int) -> Ints:
    larger = np.empty(room, np.int64)
    larger[: len(array)] = array
    return larger
