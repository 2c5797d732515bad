"""Checks whether a savepoint belongs to bronze's current lineage.

A restore that resets bronze begins another branch of history. The batches after the restored
version are discarded, and other batches get their batch ids. Tables that processed the discarded
batches do not match the new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table


class BronzeLineage:
    """The part of bronze's log that led to its newest version.

    Versions before an unreadable entry do not count. The cost is a few reads for each reset that
    bronze ever had, not one for each commit. Raises LogGapError if the end of its log is damaged.
    """

    def __init__(self, bronze: Table) -> None:
        self._bronze = bronze
        self._spans = tuple(_spans(bronze))

    def has(self, savepoint: Savepoint) -> bool:
        """Whether bronze has every batch that a savepoint's tables processed. If not, the savepoint
        can only be restored together with bronze, or be copied."""
        version = savepoint.bronze.version
        if any(first <= version <= last for first, last in self._spans):
            return True
        # Commits that are neither a batch nor an operation may lie between it and the lineage.
        then = _position(self._bronze, version)
        return then is not None and any(
            _position(self._bronze, last) == then for _, last in self._spans
        )


def _position(bronze: Table, version: int) -> tuple[Any, ...] | None:
    """Bronze's batch id, last data commit, definition, and payload without resets, at a version;
    None if they can no longer be read."""
    if (commit := _commit(bronze, version)) is None:
        return None
    state = commit.state
    payload = replace(BronzePayload.of(state).carried(), reset_commit=0)
    return state.n, state.data_commit, state.definition, payload


def _spans(bronze: Table) -> Iterator[tuple[int, int]]:
    """The log versions that led to the newest, as [first, last], newest first. Every state after a
    reset of bronze names that reset."""
    state, last = bronze.refresh(), bronze.version
    while first := BronzePayload.of(state).reset_commit:
        yield first, last
        reset = _commit(bronze, first)
        if reset is None or reset.state.origin is None:
            return
        last = reset.state.origin
        before = _commit(bronze, last)
        if before is None:
            return
        state = before.state
    yield 0, last


def _commit(bronze: Table, version: int) -> Commit | None:
    """Headgate's last commit up to a version; None if it is damaged or maintenance removed it."""
    try:
        return next(lineage(bronze, version), None)
    except LogGapError:
        return None
