"""The last batches, and how long each took until its last table had it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from headgate.declaration.graph import Node, graph_of
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, Kind
from headgate.declaration.model import Pipeline
from headgate.insight.status.checkpoints import Checkpoint, checkpoint_history
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.snapshot import TablePosition
from headgate.lake.tables.state import time_of
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class BatchTime:
    """``committed`` is when bronze had the batch, ``took`` the time from its start until then.
    ``done`` is the time from its start until the last gold table of the source had it, or without
    gold, the last silver table. None if one of them does not have it yet, or has it from a
    rebuild."""

    n: int
    committed: datetime
    rows: int
    took: timedelta
    done: timedelta | None


def batch_times(layout: Layout, declared: Pipeline, most: int) -> dict[str, tuple[BatchTime, ...]]:
    """The last batches of each source, the oldest first. Raises LogGapError if a log is damaged."""
    return {name: tuple(_of_source(layout, declared, name, most)) for name in declared.sources}


def _of_source(layout: Layout, declared: Pipeline, source: str, most: int) -> Iterator[BatchTime]:
    bronze = Table(layout.storage, BRONZE.path(source), pipeline=declared.name)
    if not bronze.exists:
        return
    state = bronze.refresh()
    batches = checkpoint_history(TablePosition(bronze, bronze.version, state), most)
    if not batches:
        return
    graph = graph_of(declared)

    def built(kind: Kind) -> list[Node]:
        return [node for node in graph.of(kind) if graph.numbered_by(node.path).name == source]

    tables = [
        Table(layout.storage, node.path, pipeline=declared.name)
        for node in built(GOLD) or built(SILVER)
    ]
    ends = [_ends(table, batches[-1].n, state.generation) for table in tables]
    yield from (_of(batch, ends) for batch in reversed(batches))


def _of(batch: Checkpoint, ends: list[Mapping[int, datetime]]) -> BatchTime:
    times = [each.get(batch.n) for each in ends]
    done = [time for time in times if time is not None]
    began = batch.committed - batch.took
    is_done = bool(done) and len(done) == len(times)
    return BatchTime(
        *(batch.n, batch.committed, batch.rows, batch.took),
        done=max(batch.took, max(done) - began) if is_done else None,
    )


def _ends(table: Table, oldest: int, generation: int) -> Mapping[int, datetime]:
    """When a table had each batch from ``oldest`` on. Commits of an earlier generation, which a
    reset has taken back, do not count."""
    found: dict[int, datetime] = {}
    if not table.exists:
        return found
    with suppress(LogGapError):  # the account of the table reports the damage
        for commit in takewhile(lambda commit: commit.state.n >= oldest, lineage(table)):
            state = commit.state
            if state.kind == "data" and state.generation == generation and commit.written_at:
                numbers = range(max(state.from_n + 1, oldest), state.n + 1)
                found |= dict.fromkeys(numbers, time_of(commit.written_at))
    return found
