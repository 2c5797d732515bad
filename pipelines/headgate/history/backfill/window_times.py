"""Which windows of a table end in an interval of time. So each window belongs to one interval,
also if it began before it."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.model import GoldTable

_MICRO = timedelta(microseconds=1)


def first_begin(table: GoldTable, begin: int, end: int) -> int | None:
    """The begin of the first window that ends after ``begin``; None if it ends after ``end``.
    Returns ``begin`` if the operator gives windows no fixed length. Times are microseconds since
    1970 UTC: a window may begin before the first time that Python knows."""
    if (spacing := operator_of(table).spacing(table.operator)) is None:
        return begin
    size, every = (duration // _MICRO for duration in spacing)
    first = ((begin - size) // every + 1) * every
    return first if first + size <= end else None
