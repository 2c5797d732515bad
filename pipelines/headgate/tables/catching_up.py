"""What a stage still has to absorb of the table above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headgate.tables.data_file import DataFile
from headgate.tables.history import batches
from headgate.tables.log import Commit
from headgate.tables.table import Table

ROWS_PER_STEP = 1_000_000
"""Batches are taken together up to this many rows, so a long backlog needs few steps."""


def steps(upstream: Table, after: int, upto: int) -> Iterator[tuple[Commit, ...]]:
    """The upstream batches in ``(after, upto]`` in groups, each to be absorbed by one commit.

    Raises LogGapError if a batch is missing from the upstream's log.
    """
    return grouped(batches(upstream, after, upto), ROWS_PER_STEP)


def steps_between(
    upstream: Table, after: int, stops: Iterable[int]
) -> Iterator[tuple[Commit, ...]]:
    """``steps`` up to the last of some batches in rising order; none passes one of them."""
    for stop in stops:
        yield from steps(upstream, after, stop)
        after = max(after, stop)


def grouped(found: Iterable[Commit], most_rows: int) -> Iterator[tuple[Commit, ...]]:
    """Batches in their order, together as long as they have no more than ``most_rows`` rows."""
    group: list[Commit] = []
    rows = 0
    for batch in found:
        size = sum(f.rows for f in batch.files)
        if group and rows + size > most_rows:
            yield tuple(group)
            group, rows = [], 0
        group.append(batch)
        rows += size
    if group:
        yield tuple(group)


def files_of(group: Sequence[Commit], after: int = 0) -> tuple[DataFile, ...]:
    """The files of the batches behind ``after``."""
    return tuple(f for batch in group if batch.state.n > after for f in batch.files)
