"""The circuit breaker: publications pause while the newest batches indicate broken input.

It stores nothing. Whether it is open is a function of the newest commits, so every process gets the
same result, and a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile

from headgate.declaration.kinds import BRONZE, SILVER
from headgate.declaration.model import CircuitBreaker, Pipeline
from headgate.declaration.quantities import is_above, plural
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage, sum_of_counts
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.silver import OUTCOMES
from headgate.lake.tables.state import Counts
from headgate.lake.tables.table import Table

_REFUSED = ("quarantined", "rejected")


def why_open(breaker: CircuitBreaker, read: int, silver: Mapping[str, Counts]) -> str | None:
    """Why publications pause; None if they do not. ``read`` is the number of records in the newest
    batches, ``silver`` has the counts of their outcomes by silver table."""
    if breaker.records_below is not None and read < breaker.records_below:
        newest = f"{plural(read, 'record')} in the last {plural(breaker.batches, 'batch')}"
        return f"{newest}, fewer than {breaker.records_below:,}"
    if breaker.refused_above is None:
        return None
    for table, counts in silver.items():
        refused, total = (sum(counts.get(key, 0) for key in keys) for keys in (_REFUSED, OUTCOMES))
        if is_above(refused, breaker.refused_above, total):
            share = f"{refused / total:.1%}, limit {breaker.refused_above:.1%}"
            return f"{table}: {refused:,} of {total:,} records are refused ({share})"
    return None


class Breaker:
    """The circuit breaker of a pipeline. It keeps its own readers of the tables open, because a
    driver checks it before each publication."""

    def __init__(self, layout: Layout, pipeline: Pipeline) -> None:
        table = partial(Table, layout.storage, pipeline=pipeline.name)
        self._declared = pipeline.circuit_breaker
        self._bronze = [table(BRONZE.path(name)) for name in pipeline.sources]
        self._silver = {name: table(SILVER.path(name)) for name in pipeline.silver}
        self._found: tuple[Sequence[int | None], str | None] | None = None

    def why_open(self) -> str | None:
        """Why publications pause; None if they do not. Raises LogGapError."""
        if self._declared is None or not all(each.exists for each in self._bronze):
            return None
        versions = [_version(each) for each in (*self._bronze, *self._silver.values())]
        # After a load, the walk over its batches is long.
        if self._found is None or self._found[0] != versions:
            self._found = versions, self._why_open(self._declared)
        return self._found[1]

    def _why_open(self, declared: CircuitBreaker) -> str | None:
        """As ``why_open``, for the tables as last refreshed."""
        states = [each.state for each in self._bronze]
        # Replays and loads are requested by a person; their batches are no sign of broken input.
        asked_for = {replay.n for state in states for replay in BronzePayload.of(state).replays}
        for bronze in self._bronze:
            asked_for.update(_loaded(bronze, declared.batches))
        newest = range(min(state.n for state in states), 0, -1)
        own = (n for n in newest if n not in asked_for)
        first = next(islice(own, declared.batches - 1, None), None)
        if first is None:
            return None
        read = sum(_counts(each, first, asked_for).get("read", 0) for each in self._bronze)
        silver = {n: _counts(table, first, asked_for) for n, table in self._silver.items()}
        return why_open(declared, read, silver)


def _version(table: Table) -> int | None:
    if not table.exists:
        return None
    table.refresh()
    return table.version


def _loaded(bronze: Table, batches: int) -> Iterator[int]:
    """The batch ids of loads, newest first, back to the newest ``batches`` batches of the
    source."""
    if not BronzePayload.of(bronze.state).loads:
        return
    others = set[int]()
    for commit in lineage(bronze):
        n = commit.state.n
        if any(load.n == n for load in BronzePayload.of(commit.state).loads):
            yield n
        else:
            others.add(n)
            if len(others) > batches:
                return


def _counts(table: Table, first: int, asked_for: Collection[int]) -> Counts:
    """The sums of a table's counts since batch id ``first``, without the batches ``asked_for``. A
    commit that has processed several batches counts as a whole."""
    if not table.exists:
        return {}
    newest = takewhile(lambda commit: commit.state.n >= first, lineage(table))
    return sum_of_counts(commit for commit in newest if commit.state.n not in asked_for)
