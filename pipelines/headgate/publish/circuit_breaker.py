"""The circuit breaker: publications pause while the newest batches say that the input is broken.

It has no memory. Whether it is open is a function of the newest commits, so every process says the
same, and a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice, takewhile

from headgate.declaration.kinds import BRONZE, SILVER
from headgate.declaration.model import CircuitBreaker, Pipeline
from headgate.storage.layout import Layout
from headgate.tables.history import lineage
from headgate.tables.log import Commit
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.state import Counts, add_counts
from headgate.tables.table import Table

_REFUSED = ("quarantined", "rejected")
_OUTCOMES = (*_REFUSED, "silver", "filtered", "duplicate")


def why_open(breaker: CircuitBreaker, read: int, silver: Mapping[str, Counts]) -> str | None:
    """Why publications pause; None if they do not. ``read`` is the number of records in the newest
    batches, ``silver`` what became of them in each silver table."""
    if breaker.records_below is not None and read < breaker.records_below:
        newest = f"the last {breaker.batches} batches have {read:,} records"
        return f"{newest}, fewer than {breaker.records_below:,}"
    if breaker.refused_above is None:
        return None
    for table, counts in silver.items():
        refused, total = (sum(counts.get(key, 0) for key in keys) for keys in (_REFUSED, _OUTCOMES))
        if total and refused / total > breaker.refused_above:
            share = f"{refused / total:.1%}, limit {breaker.refused_above:.1%}"
            return f"{table}: {refused:,} of {total:,} records are refused ({share})"
    return None


def is_open(layout: Layout, pipeline: Pipeline) -> str | None:
    """Why the publications of a pipeline pause; None if they do not. Raises LogGapError."""
    breaker = pipeline.circuit_breaker
    if breaker is None:
        return None

    def table(path: str) -> Table:
        return Table(layout.storage, path, pipeline=pipeline.name)

    bronze = [table(BRONZE.path(name)) for name in pipeline.sources]
    if not all(each.exists for each in bronze):
        return None
    states = [each.refresh() for each in bronze]
    # A person has made the batch of a replay. It says nothing about the input.
    replays = {replay.n for state in states for replay in BronzePayload.of(state).replays}
    newest = range(min(state.n for state in states), 0, -1)
    first = next(islice((n for n in newest if n not in replays), breaker.batches - 1, None), None)
    if first is None:
        return None
    read = sum(_counts(each, first, replays).get("read", 0) for each in bronze)
    silver = {name: _counts(table(SILVER.path(name)), first, replays) for name in pipeline.silver}
    return why_open(breaker, read, silver)


def _counts(table: Table, first: int, replays: Collection[int]) -> Counts:
    """The sum of a table's counts since batch id ``first``, without replays. A commit that took
    several batches together counts as a whole."""
    total: Counts = {}
    for commit in takewhile(lambda commit: commit.state.n >= first, _lineage(table)):
        if commit.state.n not in replays:
            total = add_counts(total, commit.state.batch)
    return total


def _lineage(table: Table) -> Iterator[Commit]:
    return lineage(table) if table.exists else iter(())
