"""Rows found by a hash of their id, in memory, growing batch by batch.

A hash table with chains, in NumPy's arrays: a place for the lowest bits of a key, the newest row
there, and for each row the next older one of its place. A batch costs what it has ids, hardly more
with what is held.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_PLACES = 2  # for each row that there is room for
_LONG = 64  # steps along chains until all keys are looked at instead
_ROOM = 1 << 10  # rows, to begin with
_ROUNDS = 8  # of rows that share a place, before they are sorted
_PART = 1 << 17  # rows linked at once: as many as fit the processor's cache
_NOBODY = -1


class IdIndex:
    """Rows of ``width`` integers, each under a key whose lowest bits are as good as random."""

    def __init__(self, width: int) -> None:
        self._length = 0
        self._keys = np.empty(0, np.int64)
        self._columns = [np.empty(0, np.int64) for _ in range(width)]
        self._make_room(_ROOM)

    def __len__(self) -> int:
        return self._length

    def add(self, keys: Ints, columns: Sequence[Ints]) -> None:
        """Hold rows under ``keys``; these and each of ``columns`` have shape (n,)."""
        first, last = self._length, self._length + len(keys)
        if last > len(self._keys):
            self._make_room(1 << last.bit_length())
        self._keys[first:last] = keys
        for held, column in zip(self._columns, columns, strict=True):
            held[first:last] = column
        self._link(first, last)
        self._length = last

    def find(self, wanted: Ints) -> tuple[Ints, list[Ints]]:
        """Keys and columns of all rows that are held under ``wanted``, which has each key once."""
        found = self._find(wanted)
        return self._keys[found], [column[found] for column in self._columns]

    def column(self, number: int) -> Ints:
        """One column of all rows, in the order that ``keep`` counts them in."""
        return self._columns[number][: self._length]

    def keep(self, kept: Flags) -> None:
        """Forget the rows that are not ``kept``, counted as ``column`` gives them."""
        places = np.flatnonzero(kept)
        for held in (self._keys, *self._columns):
            held[: len(places)] = held[places]
        self._length = len(places)
        self._link_all()

    def _find(self, wanted: Ints) -> Rows:
        row = self._newest[self._places(wanted)]
        found = [row[:0]]
        for _ in range(_LONG):
            here = row != _NOBODY
            row, wanted = row[here], wanted[here]
            if not len(row):
                return np.concatenate(found)
            found.append(row[self._keys[row] == wanted])
            row = self._older[row]
        # As long as this are the chains of a producer that gives many records one id.
        crowd = np.isin(self._keys[: self._length], wanted)
        found = [rows[~crowd[rows]] for rows in found]
        return np.concatenate([*found, np.flatnonzero(crowd).astype(np.int32)])

    def _make_room(self, rows: int) -> None:
        self._keys = _larger(self._keys, rows)
        self._columns = [_larger(column, rows) for column in self._columns]
        # Four bytes each: what is in memory is far below 2^31 rows.
        self._newest = np.empty(_PLACES * rows, np.int32)
        self._older = np.empty(rows, np.int32)
        self._link_all()

    def _link_all(self) -> None:
        self._newest.fill(_NOBODY)
        self._link(0, self._length)

    def _link(self, first: int, last: int) -> None:
        """Put the rows [first, last), which are newer than all others, into the chains."""
        for begin in range(first, last, _PART):
            self._link_part(begin, min(begin + _PART, last))

    def _link_part(self, first: int, last: int) -> None:
        rows = np.arange(first, last, dtype=np.int32)
        places = self._places(self._keys[first:last])
        for _ in range(_ROUNDS):
            self._older[rows] = self._newest[places]
            self._newest[places] = rows
            # Of several rows for one place the last one is there now: the others are next.
            waiting = self._newest[places] != rows
            rows, places = rows[waiting], places[waiting]
            if not len(rows):
                return
        self._link_crowd(rows, places)

    def _link_crowd(self, rows: Rows, places: Ints) -> None:
        """As ``_link_part``, with a sort: for a producer that gives many records one id."""
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
