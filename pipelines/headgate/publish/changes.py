"""What a table's log has beyond a version: the commits whose rows are to be published."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.tables.history import Batch, read_commit
from headgate.tables.table import Table

ROWS_PER_STEP = 100_000
"""Commits are published together up to this many rows, so a long backlog takes few steps."""

_WITH_ROWS = ("data", "operation")


def changes(table: Table, after: int, upto: int) -> Iterator[Batch]:
    """The commits of versions ``(after, upto]`` that may have brought rows, oldest first.

    Raises LogGapError if one is missing from the log.
    """
    for version in range(after + 1, upto + 1):
        commit = read_commit(table.storage, version)
        if commit is not None and commit.state.kind in _WITH_ROWS and commit.files:
            yield commit


def steps(commits: Iterator[Batch], *, one_by_one: bool) -> Iterator[tuple[Batch, ...]]:
    """``commits`` in groups, each to be published before its position is committed."""
    group: list[Batch] = []
    rows = 0
    for commit in commits:
        size = sum(f.rows for f in commit.files)
        if group and (one_by_one or rows + size > ROWS_PER_STEP):
            yield tuple(group)
            group, rows = [], 0
        group.append(commit)
        rows += size
    if group:
        yield tuple(group)
