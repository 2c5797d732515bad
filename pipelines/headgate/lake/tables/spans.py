"""Spans of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""The first and the last microsecond of a time."""
EVERYTHING: Span = (-(1 << 62), 1 << 62)


def united(spans: Iterable[Span]) -> list[Span]:
    """Merges spans that may overlap into disjoint, rising ones."""
    return list(_united(sorted(spans)))


def _united(spans: Iterable[Span]) -> Iterator[Span]:
    first, last = None, None
    for begin, end in spans:
        if last is None or first is None:
            first, last = begin, end
        elif begin <= last + 1:
            last = max(last, end)
        else:
            yield first, last
            first, last = begin, end
    if first is not None and last is not None:
        yield first, last
