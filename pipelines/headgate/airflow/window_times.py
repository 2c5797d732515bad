"""The event times of the windows that belong to a run's interval: those that end in it.

So each window belongs to an interval, also if it began before it. All tables are computed from the
first of these windows on: those with shorter windows partly again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from headgate.declaration.model import GoldTable
from headgate.declaration.operators import operator_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_begin(tables: Iterable[GoldTable], begin: datetime, end: datetime) -> datetime:
    """The begin of the first window that ends after ``begin`` and at or before ``end``; ``begin``
    if no such window has begun before it."""
    found = [begin]
    for table in tables:
        if (spacing := operator_of(table).spacing(table.operator)) is not None:
            size, every = spacing
            first = _EPOCH + ((begin - size - _EPOCH) // every + 1) * every
            if first + size <= end:
                found.append(first)
    return min(found)


def last_end(table: GoldTable, end: datetime) -> datetime:
    """The end of the last window that an event before ``end`` can be in; at least ``end``."""
    if (spacing := operator_of(table).spacing(table.operator)) is None:
        return end
    size, every = spacing
    return _EPOCH - (_EPOCH - end) // every * every - every + size
