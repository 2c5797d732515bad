"""Durations of stages, and from arrival to gold, from the times of commits."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import takewhile

from headgate.declaration.graph import Graph, Node
from headgate.declaration.kinds import BRONZE, GOLD, INPUTS, NUMBERING, PUBLICATION, SILVER, kind_of
from headgate.insight.metrics.definitions import STAGES
from headgate.insight.metrics.samples import Histograms
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import inputs_of
from headgate.lake.tables.state import commit_time

KEPT = 10_000
"""Batches whose times are remembered. A table that is further behind is not observed."""
_MICROS = 1_000_000


class _Times(OrderedDict[int, int]):
    """Times in microseconds by a number that grows; the oldest are forgotten."""

    def remember(self, number: int, at: int) -> None:
        self[number] = at
        self.move_to_end(number)
        while len(self) > KEPT:
            self.popitem(last=False)


class Durations:
    """Observes durations. Commits must be taken in the order of the graph: each table after its
    upstream tables. ``slow`` counts, for each gold table, the batches that took longer from arrival
    to gold than its limit in ``limits``: a histogram counts them at its own bounds only."""

    def __init__(
        self,
        pipeline: str,
        graph: Graph,
        histograms: Histograms,
        limits: Mapping[str, timedelta],
    ) -> None:
        self._pipeline, self._graph, self._histograms = pipeline, graph, histograms
        self._limits = {path: limit.total_seconds() for path, limit in limits.items()}
        self.slow = Counter[str]()
        self._arrived: dict[str, _Times] = {node.path: _Times() for node in graph.of(*NUMBERING)}
        self._read: dict[str, Mapping[str, int]] = {}  # by input log, as of its last commit
        self._by_batch: dict[str, _Times] = {node.path: _Times() for node in graph}
        self._by_version: dict[str, _Times] = {node.path: _Times() for node in graph}
        for stage in STAGES if graph.of(PUBLICATION) else STAGES[:-1]:
            histograms.begin("batch_duration_seconds", pipeline, stage)
        for node in graph.of(GOLD):
            histograms.begin("arrival_to_gold_seconds", pipeline, node.path)

    def begin_with(self, node: Node, commit: Commit) -> None:
        """Remember the commit with which a reading begins, without observing it."""
        if commit.version not in self._by_version[node.path]:
            self._remember(node, commit)

    def take(self, node: Node, commit: Commit) -> None:
        """Observe a commit."""
        if commit.state.kind == "reset":
            # Batch ids are used again from here on.
            for times in (self._by_batch[node.path], self._arrived.get(node.path, _Times())):
                times.clear()
        if commit.written_at is None:
            return
        self._remember(node, commit)
        if commit.state.kind != "data":
            return
        if node.kind == BRONZE:
            self._observe("bronze", commit.state.at, commit.written_at)
        elif node.kind in (SILVER, GOLD):
            # A table has the batch ids of its input log, if it has one.
            logs = [path for path in node.upstream if kind_of(path) == INPUTS]
            above = [self._by_batch[path].get(commit.state.n) for path in logs or node.upstream]
            known = [at for at in above if at is not None]
            read = max(known) if len(known) == len(above) else None
            self._observe(node.kind.name, read, commit.written_at)
        elif node.kind == PUBLICATION:
            sent = PublicationPayload.of(commit.state)
            if not sent.event:  # an event of a gate belongs to no commit
                read = self._by_version[node.upstream[0]].get(sent.version)
                self._observe("publish", read, commit.written_at)
        if node.kind == GOLD:
            self._observe_latency(node, commit, commit.written_at)

    def _remember(self, node: Node, commit: Commit) -> None:
        if commit.written_at is None:
            return
        self._by_version[node.path].remember(commit.version, commit.written_at)
        if commit.state.kind != "data":
            return
        self._by_batch[node.path].remember(commit.state.n, commit.written_at)
        if node.kind == BRONZE and (arrived := BronzePayload.of(commit.state).arrived) is not None:
            self._arrived[node.path].remember(commit.state.n, arrived)
        if node.kind == INPUTS:
            before, self._read[node.path] = self._read.get(node.path, {}), inputs_of(commit.state)
            known = [
                at
                for source, n in inputs_of(commit.state).items()
                for batch in range(before.get(source, n) + 1, n + 1)
                if (at := self._arrived[BRONZE.path(source)].get(batch)) is not None
            ]
            if known:
                self._arrived[node.path].remember(commit.state.n, min(known))

    def _observe(self, stage: str, begin: int | None, end: int) -> None:
        if begin is not None:
            self._histograms.observe(
                "batch_duration_seconds", _seconds(begin, end), self._pipeline, stage
            )

    def _observe_latency(self, node: Node, commit: Commit, end: int) -> None:
        arrived = self._arrived[self._graph.numbered_by(node.path).path]
        for n in range(commit.state.from_n + 1, commit.state.n + 1):
            if (began := arrived.get(n)) is not None:
                latency = _seconds(began, end)
                self._histograms.observe(
                    "arrival_to_gold_seconds", latency, self._pipeline, node.path
                )
                self.slow[node.path] += latency > self._limits[node.path]

    def age(self, node: Node, n: int, now: datetime) -> float:
        """How long the oldest record has been there that bronze has and a gold table at batch ``n``
        lacks, in seconds, as far as its arrival is known; 0 if there is none."""
        arrived = self._arrived[self._graph.numbered_by(node.path).path]
        # The newest come first: a table lacks only few.
        lacking = takewhile(lambda batch: batch > n, reversed(arrived))
        oldest = min((arrived[batch] for batch in lacking), default=None)
        return 0.0 if oldest is None else _seconds(oldest, commit_time(now))


def _seconds(begin: int, end: int) -> float:
    """At least 0: a log has times to the millisecond, and clocks of machines differ."""
    return max(end - begin, 0) / _MICROS
