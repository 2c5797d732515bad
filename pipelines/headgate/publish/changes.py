"""What a table's log has beyond a version: the commits whose rows are to be published."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.tables.history import Batch, read_commit
from headgate.tables.table import Table

_WITH_ROWS = ("data", "operation")


def changes(table: Table, after: int, upto: int) -> Iterator[Batch]:
    """The commits of versions ``(after, upto]`` that may have brought rows, oldest first.

    Raises LogGapError if one is missing from the log.
    """
    for version in range(after + 1, upto + 1):
        commit = read_commit(table.storage, version)
        if commit is not None and commit.state.kind in _WITH_ROWS and commit.files:
            yield commit
