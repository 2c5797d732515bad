"""Counts, positions and durations, from the commits of the tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import (
    BRONZE,
    FILES,
    GOLD,
    NUMBERING,
    PUBLICATION,
    RECORDS,
    SILVER,
    Kind,
)
from headgate.insight.metrics.limits import latency_limits
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.parts.durations import Durations
from headgate.insight.metrics.parts.unsent import Unsent
from headgate.insight.metrics.samples import Histograms, Samples
from headgate.insight.metrics.tail import TableTail
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import Commit, list_log, read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.silver import OF_RECORDS, OF_ROWS
from headgate.lake.tables.state import Counts, State, time_of

MOST_KEPT = 500
"""The most commits of a table that are kept while another one cannot be read."""


@dataclass(frozen=True)
class _At:
    """A table and the state of its newest commit."""

    name: str
    path: str
    state: State


class TablesPart(Reading):
    """Reads each entry of the logs once. It is read equally often under load: otherwise it would
    fall behind the stream."""

    name: ClassVar[str] = "tables"
    every: ClassVar[float] = 1.0
    share: ClassVar[float | None] = None

    def __init__(self, place: WatchedPipeline, histograms: Histograms) -> None:
        self._declared, self._layout = place.declared, place.layout
        self._graph: Graph = graph_of(place.declared)
        self._tails = {
            node.path: TableTail(place.layout.storage, node.path) for node in self._graph
        }
        limits = latency_limits(place.declared, place.limits)
        self._durations = Durations(place.declared.name, self._graph, histograms, limits)
        self._unsent = {
            name: Unsent(publication, self._tails[self._graph[PUBLICATION.path(name)].upstream[0]])
            for name, publication in place.declared.publish.items()
            if publication.layer != "gate"  # it sends documents, and no rows of commits
        }
        self._news: dict[str, deque[Commit]] = {}
        self._stored: dict[str, int] = {}
        self._created: dict[str, int | None] = {}
        self._is_sound = False

    @property
    def is_sound(self) -> bool:
        """Whether the last reading had no error. After an error, what other parts keep for a
        version may be out of date."""
        return self._is_sound

    @property
    def versions(self) -> tuple[int, ...]:
        """The log version of each table of records, as last read; -1 for none. Other parts compare
        them to find changes. A new publication has no table before the next start of a driver."""
        found = (self.version(node.path) for node in self._graph.of(*RECORDS))
        return tuple(-1 if version is None else version for version in found)

    def version(self, path: str) -> int | None:
        """The log version of a table, as last read; None if there is none."""
        commit = self._tails[path].commit
        return None if commit is None else commit.version

    def files_read(self, source: str) -> int:
        """The number of landing files of a source that bronze has ingested; 0 if there are none or
        the source is Kafka."""
        commit = self._tails[BRONZE.path(source)].commit
        return 0 if commit is None else BronzePayload.of(commit.state).sequence

    def read(self, samples: Samples, now: datetime) -> None:
        self._is_sound = False
        # Downstream tables first, as in a snapshot: none is seen ahead of its upstream.
        nodes = tuple(self._graph)
        for node in reversed(nodes):
            kept = self._news.setdefault(node.path, deque(maxlen=MOST_KEPT))
            kept.extend(self._tails[node.path].poll())
        # Commits that were read before another table had an error are taken now.
        news, self._news = self._news, {}
        for node in nodes:
            for commit in news[node.path]:
                self._durations.take(node, commit)
                self._store(node.path, commit)
            if (newest := self._tails[node.path].commit) is not None:
                self._durations.begin_with(node, newest)
        for name, unsent in self._unsent.items():
            self._add_publication(samples, name, unsent, news, now)
        self._add_bronze(samples, now)
        self._add_silver(samples)
        self._add_gold(samples, now)
        self._add_positions(samples)
        self._is_sound = True

    def _store(self, path: str, commit: Commit) -> None:
        if commit.state.kind == "data":
            added = sum(file.size for file in commit.news)
            self._stored[path] = self._stored.get(path, 0) + added

    def _standing(self, *kinds: Kind) -> Iterator[_At]:
        for node in self._graph.of(*kinds):
            if (commit := self._tails[node.path].commit) is not None:
                yield _At(node.name, node.path, commit.state)

    def _add_bronze(self, samples: Samples, now: datetime) -> None:
        for at in self._standing(FILES):
            aside = at.state.total.get("set_aside", 0)
            samples.add("files_set_aside", aside, source=at.name)
        for at in self._standing(BRONZE):
            source = {"source": at.name}
            samples.add("read_records_total", at.state.total.get("read", 0), **source)
            for outcome, size in _bytes(at.state.total).items():
                samples.add("read_bytes_total", size, outcome=outcome, **source)
            # A source that has never delivered is missed from the time of its table on.
            if (since := at.state.changed_at or self._created_at(at.path)) is not None:
                samples.add("last_record_timestamp_seconds", time_of(since), **source)
            watermark = BronzePayload.of(at.state).watermark
            if watermark is not None:
                lag = now - time_of(watermark)
                samples.add("watermark_timestamp_seconds", time_of(watermark), **source)
                samples.add("event_time_lag_seconds", lag.total_seconds(), **source)

    def _created_at(self, path: str) -> int | None:
        """When the oldest entry of a table's log was written, in microseconds; None if it has no
        time or is damaged."""
        if path not in self._created:
            self._created[path], log = None, self._tails[path].log
            with suppress(LogGapError):  # nothing else needs this entry
                if (first := read_commit(log, list_log(log).oldest)) is not None:
                    self._created[path] = first.written_at
        return self._created[path]

    def _add_silver(self, samples: Samples) -> None:
        for at in self._standing(SILVER):
            where = {"source": self._declared.silver[at.name].source, "table": at.path}
            explodes = self._declared.silver[at.name].explode is not None
            others = ("empty", "exploded") if explodes else OF_ROWS
            for outcome in (*OF_RECORDS, *others):
                total = at.state.total.get(outcome, 0)
                samples.add("records_total", total, outcome=outcome, **where)
            for outcome in OF_ROWS if explodes else ():
                total = at.state.total.get(outcome, 0)
                samples.add("items_total", total, outcome=outcome, **where)

    def _add_gold(self, samples: Samples, now: datetime) -> None:
        for at in self._standing(GOLD):
            total = at.state.total
            for outcome in ("folded", "late"):
                samples.add("pairs_total", total.get(outcome, 0), table=at.path, outcome=outcome)
            samples.add("replayed_pairs_total", total.get("replayed", 0), table=at.path)
            samples.add("final_rows_total", total.get("final", 0), table=at.path)
            samples.add("slow_batches_total", self._durations.slow[at.path], table=at.path)
            age = self._durations.age(self._graph[at.path], at.state.n, now)
            samples.add("results_age_seconds", age, table=at.path)
            if (changed := at.state.changed_at) is not None:
                samples.add("gold_changed_timestamp_seconds", time_of(changed), table=at.path)

    def _add_positions(self, samples: Samples) -> None:
        above = {at.path: at.state.n for at in self._standing(*NUMBERING)}
        for at in self._standing(BRONZE, SILVER, GOLD):
            behind = above.get(self._graph.numbered_by(at.path).path, at.state.n) - at.state.n
            samples.add("batch_number", at.state.n, table=at.path)
            samples.add("lag_batches", max(behind, 0), table=at.path)
            samples.add("stored_bytes_total", self._stored.get(at.path, 0), table=at.path)

    def _add_publication(
        self,
        samples: Samples,
        name: str,
        unsent: Unsent,
        news: Mapping[str, Collection[Commit]],
        now: datetime,
    ) -> None:
        position = self._tails[PUBLICATION.path(name)].commit
        unsent.take(news[unsent.path], position)
        if position is None:
            return
        samples.add("publication_lag_commits", unsent.count, publication=name)
        samples.add("publication_lag_seconds", unsent.waiting(now), publication=name)


def _bytes(total: Counts) -> dict[str, int]:
    """The bytes that bronze has read, by the outcome of their records."""
    others = {outcome: total.get(f"{outcome}_bytes", 0) for outcome in ("quarantined", "duplicate")}
    return {"valid": total.get("read_bytes", 0) - sum(others.values()), **others}
