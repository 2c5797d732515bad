"""The upstream batches that a stage has not processed yet, in steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.history import NO_WATERMARKS, Watermarks, batches
from headgate.lake.tables.log import Commit
from headgate.lake.tables.table import Table

ROWS_PER_STEP = 1_000_000
"""Batches are grouped up to this many rows, so that a long backlog needs few steps."""


def batch_steps(
    upstream: Table,
    after: int,
    upto: int,
    watermarks: Watermarks = NO_WATERMARKS,
    most_rows: int | None = None,
) -> Iterator[tuple[Commit, ...]]:
    """The upstream batches in ``(after, upto]`` in groups, each to be processed by one commit.
    ``watermarks`` as in ``history.batches``, ``most_rows`` as in ``grouped``, ``ROWS_PER_STEP`` if
    None.

    Raises LogGapError if a batch is missing from the upstream's log.
    """
    most = ROWS_PER_STEP if most_rows is None else most_rows
    return grouped(batches(upstream, after, upto, watermarks), most)


def steps_between(
    upstream: Table,
    after: int,
    stops: Iterable[int],
    watermarks: Watermarks,
    most_rows: int | None = None,
) -> Iterator[tuple[Commit, ...]]:
    """The steps after batch id ``after``. ``stops`` are batch ids in rising order; a step ends at
    each of them. The others as in ``batch_steps``."""
    for stop in stops:
        yield from batch_steps(upstream, after, stop, watermarks, most_rows)
        after = max(after, stop)


class _HasRows(Protocol):
    @property
    def rows(self) -> int: ...


_Part = TypeVar("_Part", bound=_HasRows)


def grouped(found: Iterable[_Part], most_rows: int) -> Iterator[tuple[_Part, ...]]:
    """Consecutive commits or files in groups of at most ``most_rows`` rows, or of one. With 0, each
    is a group."""
    group: list[_Part] = []
    rows = 0
    for each in found:
        if group and (not most_rows or rows + each.rows > most_rows):
            yield tuple(group)
            group, rows = [], 0
        group.append(each)
        rows += each.rows
    if group:
        yield tuple(group)


def files_after(group: Sequence[Commit], after: int = 0) -> tuple[DataFile, ...]:
    """The files of the batches after batch id ``after``."""
    return tuple(f for batch in group if batch.state.n > after for f in batch.files)
