"""Whether a savepoint lies in the past that bronze has now.

A restore that takes bronze back leaves a past: what came behind the point that it went back to
belongs to none any more, and other batches take its place. Tables that saw the old ones do not fit
the new ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.savepoints.savepoint import Savepoint
from headgate.tables.errors import LogGapError
from headgate.tables.history import lineage
from headgate.tables.log import Commit
from headgate.tables.table import Table


class BronzePast:
    """What of its log led to the bronze of now.

    What came before an entry that cannot be read counts as another past. Costs a few reads for
    each reset that bronze ever had, not one for each commit. Raises LogGapError where the end of
    its log is damaged.
    """

    def __init__(self, bronze: Table) -> None:
        self._spans = tuple(_spans(bronze))

    def has(self, savepoint: Savepoint) -> bool:
        """Whether bronze has every batch that a savepoint's tables saw. If not, it can be restored
        with bronze only, or as a copy."""
        version = savepoint.bronze.version
        return any(first <= version <= last for first, last in self._spans)


def _spans(bronze: Table) -> Iterator[tuple[int, int]]:
    """The log versions, as [first, last], that led to the newest; the newest first. Every reset of
    bronze names itself in what follows it."""
    state, last = bronze.refresh(), bronze.handle.version()
    while first := state.reset_commit:
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
    """Headgate's last one up to a version; None where it is damaged, or maintenance let it go."""
    try:
        return next(lineage(bronze, version), None)
    except LogGapError:
        return None
