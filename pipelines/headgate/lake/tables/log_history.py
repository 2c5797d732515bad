"""Finds the commit at which a table had reached a batch or a time, in few reads of its log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from headgate.lake.storage.files import Storage
from headgate.lake.tables.log import Commit, read_commit
from headgate.lake.tables.state import State


class LogHistory:
    """The log of the table in ``storage`` from its entry ``oldest`` on. Generations never decrease,
    and positions never decrease between two resets."""

    def __init__(self, storage: Storage, oldest: int) -> None:
        self._storage = storage
        self._oldest = oldest
        self._read: dict[int, Commit] = {}

    def commit(self, version: int) -> Commit:
        """The last commit of Headgate up to a version. Raises LogGapError."""
        if version not in self._read:
            found = read_commit(self._storage, version)
            self._read[version] = found if found else self.commit(version - 1)
        return self._read[version]

    def state(self, version: int) -> State:
        return self.commit(version).state

    def reaching(self, version: int, n: int) -> Commit:
        """The newest commit in the lineage of ``version`` at which the table had processed at most
        batch ``n``; the oldest commit, if the log does not reach back so far."""
        while True:
            begins = self._first_of_generation(version)
            at = self.commit(begins)
            if at.state.n <= n or begins <= self._oldest or at.state.origin is None:
                return self._last(begins, version, lambda s: s.n <= n)
            version = at.state.origin

    def following(self, version: int, n: int) -> Commit | None:
        """The commit in the lineage of ``version`` with the first batch after batch ``n``; the
        oldest commit, if the log does not reach back so far. None if there is no such batch."""
        if self.state(version).n <= n:
            return None
        at = self.reaching(version, n).version
        # The next commits are of the same lineage: a reset goes back to one after this batch.
        while self.state(at).n <= n:
            at += 1
        return self.commit(at)

    def resets(self, after: int, version: int) -> Iterator[Commit]:
        """The resets after version ``after``, up to ``version``, newest first."""
        while (begins := self._first_of_generation(version)) > after:
            if (at := self.commit(begins)).state.kind == "reset":
                yield at
            version = begins - 1

    def before(self, version: int, moment: int) -> int:
        """The newest version, up to ``version``, that was committed at or before ``moment``
        (microseconds since 1970 UTC); the oldest version, if all are newer."""
        return self._last(self._oldest, version, lambda s: s.at <= moment).version

    def _first_of_generation(self, version: int) -> int:
        generation, span = self.state(version).generation, range(self._oldest, version)
        return self._oldest + bisect_left(span, generation, key=lambda v: self.state(v).generation)

    def _last(self, first: int, last: int, holds: Callable[[State], bool]) -> Commit:
        """The commit of the last version for which ``holds`` is true; of ``first`` if there is
        none."""
        span = range(first, last + 1)
        found = bisect_right(span, False, key=lambda v: not holds(self.state(v)))
        return self.commit(span[max(found - 1, 0)])
