"""The circuit breaker: publications pause while the newest batches indicate broken input.

It stores nothing. Whether it is open is a function of the newest commits, so every process gets the
same result, and a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile

from headgate.declaration.kinds import BRONZE, SILVER
from headgate.declaration.model import CircuitBreaker, Pipeline
from headgate.declaration.quantities import is_above, plural
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage, sum_of_counts
from headgate.lake.tables.payloads.silver import records_in
from headgate.lake.tables.state import Counts
from headgate.lake.tables.table import Table


def why_open(breaker: CircuitBreaker, read: int, silver: Mapping[str, Counts]) -> str | None:
    """Why publications pause; None if they do not. ``read`` is the number of records in the newest
    batches, ``silver`` has the counts of their outcomes by silver table."""
    if breaker.records_below is not None and read < breaker.records_below:
        newest = f"{plural(read, 'record')} in the last {plural(breaker.batches, 'batch')}"
        return f"{newest}, fewer than {breaker.records_below:,}"
    if breaker.refused_above is None:
        return None
    for table, counts in silver.items():
        for refused, total, what in _refused(counts):
            if is_above(refused, breaker.refused_above, total):
                share = f"{refused / total:.1%}, limit {breaker.refused_above:.1%}"
                return f"{table}: {refused:,} of {total:,} {what} are refused ({share})"
    return None


def _refused(counts: Counts) -> Iterator[tuple[int, int, str]]:
    """How many records are refused, of how many. In a table that explodes an array, records are
    quarantined and items rejected."""
    quarantined, rejected = counts.get("quarantined", 0), counts.get("rejected", 0)
    if "items" in counts:
        yield quarantined, records_in(counts), "records"
        yield rejected, counts["items"], "items"
    else:
        yield quarantined + rejected, records_in(counts), "records"


class Breaker:
    """The circuit breaker of a pipeline. It keeps its own readers of the tables open, because a
    driver checks it before each publication. The tables of sources in ``without`` are not read."""

    def __init__(self, layout: Layout, pipeline: Pipeline, without: Collection[str] = ()) -> None:
        table = partial(Table, layout.storage, pipeline=pipeline.name)
        self._has_several = len(pipeline.sources) > 1
        self._declared, sources = pipeline.circuit_breaker, pipeline.sources.keys() - {*without}
        self._bronze = {n: table(BRONZE.path(n)) for n in pipeline.sources if n in sources}
        self._silver = {
            source: {
                name: table(SILVER.path(name))
                for name, silver in pipeline.silver.items()
                if silver.source == source
            }
            for source in self._bronze
        }
        self._found: tuple[Sequence[int | None], str | None] | None = None

    def why_open(self) -> str | None:
        """Why publications pause; None if they do not. Raises LogGapError."""
        if self._declared is None or not all(each.exists for each in self._bronze.values()):
            return None
        silver = (table for tables in self._silver.values() for table in tables.values())
        versions = [_version(each) for each in (*self._bronze.values(), *silver)]
        # After a load, the walk over its batches is long.
        if self._found is None or self._found[0] != versions:
            reasons = (self._why_open(self._declared, source) for source in self._bronze)
            self._found = versions, next(filter(None, reasons), None)
        return self._found[1]

    def _why_open(self, declared: CircuitBreaker, source: str) -> str | None:
        """As ``why_open``, for a source and its silver tables as last refreshed."""
        batches = _newest_batches(self._bronze[source], declared.batches)
        own = [n for n, counts in batches.items() if not _is_asked_for(counts)]
        if len(own) < declared.batches:
            return None
        asked_for = batches.keys() - own
        read = sum(batches[n].get("read", 0) for n in own)
        silver = {
            name: _counts(table, own[-1], asked_for) for name, table in self._silver[source].items()
        }
        why = why_open(declared, read, silver)
        return f"{source}: {why}" if why and self._has_several else why


def _version(table: Table) -> int | None:
    if not table.exists:
        return None
    table.refresh()
    return table.version


def _is_asked_for(counts: Counts) -> bool:
    """Whether a batch is one of a replay or of a load: a person has requested these, so they are no
    sign of broken input."""
    return bool(counts.get("replayed") or counts.get("loaded"))


def _newest_batches(bronze: Table, batches: int) -> dict[int, Counts]:
    """The counts of the newest batches of a bronze table, newest first, back to the ``batches``-th
    one that the source has sent."""
    found: dict[int, Counts] = {}
    for commit in lineage(bronze):
        if commit.state.kind == "data":
            found[commit.state.n] = commit.state.batch
            batches -= not _is_asked_for(commit.state.batch)
        if not batches:
            break
    return found


def _counts(table: Table, first: int, asked_for: Collection[int]) -> Counts:
    """The sums of a table's counts since batch id ``first``, without the batches ``asked_for``. A
    commit that has processed several batches counts as a whole."""
    if not table.exists:
        return {}
    newest = takewhile(lambda commit: commit.state.n >= first, lineage(table))
    return sum_of_counts(commit for commit in newest if commit.state.n not in asked_for)
