"""The commits of a table that a publication has not sent yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from headgate.declaration.model import Publication
from headgate.flow.publish.changes import is_news
from headgate.insight.metrics.tail import TableTail
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import Commit, read_commit
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.state import time_of

MOST = 10_000
"""The most commits that are counted."""
MOST_LOOKED_BACK = 1_000
"""The most entries from before the reading began that are read."""


class Unsent:
    """``source`` follows the log of the publication's table."""

    def __init__(self, publication: Publication, source: TableTail) -> None:
        self._publication, self._source = publication, source
        self._waiting: deque[tuple[int, int]] = deque(maxlen=MOST)
        self._has_begun = False
        self._begins = source.begins

    @property
    def path(self) -> str:
        """The table whose rows are sent."""
        return self._source.path

    @property
    def count(self) -> int:
        return len(self._waiting)

    def waiting(self, now: datetime) -> float:
        """How long the oldest commit has waited, in seconds; 0 if there is none."""
        if not self._waiting:
            return 0.0
        return max((now - time_of(self._waiting[0][1])).total_seconds(), 0.0)

    def take(self, news: Iterable[Commit], position: Commit | None) -> None:
        """Take the new commits of the table, and the newest one of the publication's position."""
        if position is None:
            return
        sent = PublicationPayload.of(position.state).version
        if self._begins != self._source.begins:  # another log may have other versions
            self._waiting.clear()
            self._has_begun, self._begins = False, self._source.begins
        if not self._has_begun:
            self._look_back(sent)
        else:
            self._keep(news)
        while self._waiting and self._waiting[0][0] <= sent:
            self._waiting.popleft()

    def _look_back(self, sent: int) -> None:
        newest = self._source.commit
        if newest is None:
            return
        self._has_begun = True
        for version in range(max(sent, newest.version - MOST_LOOKED_BACK) + 1, newest.version + 1):
            with suppress(LogGapError):  # maintenance has removed the entry
                commit = read_commit(self._source.log, version)
                self._keep(() if commit is None else (commit,))

    def _keep(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            if is_news(commit) and self._is_wanted(commit) and commit.written_at is not None:
                self._waiting.append((commit.version, commit.written_at))

    def _is_wanted(self, commit: Commit) -> bool:
        return self._publication.when != "final" or (
            any(file.is_final for file in commit.news) or bool(commit.removed_final)
        )
