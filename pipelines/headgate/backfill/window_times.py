"""Which windows of a table end in an interval of time. So each window belongs to one interval,
also if it began before it."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.declaration.model import GoldTable
from headgate.declaration.operators import operator_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_begin(table: GoldTable, begin: datetime, end: datetime | None) -> datetime | None:
    """The begin of the first window that ends after ``begin``; None if it ends after ``end``.
    Returns ``begin`` if the operator gives windows no fixed length."""
    if (spacing := operator_of(table).spacing(table.operator)) is None:
        return begin
    size, every = spacing
    first = _EPOCH + ((begin - size - _EPOCH) // every + 1) * every
    return None if end is not None and first + size > end else first


def last_end(table: GoldTable, end: datetime) -> datetime:
    """The end of the last window that an event before ``end`` can be in; at least ``end``."""
    if (spacing := operator_of(table).spacing(table.operator)) is None:
        return end
    size, every = spacing
    return _EPOCH - (_EPOCH - end) // every * every - every + size
