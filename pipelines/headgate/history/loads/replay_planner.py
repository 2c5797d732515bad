"""Folds a load's late rows with replays of late rows, each for a part of the event time.

A load ends with these replays. Its gold tables are then the same as if the pipeline had begun with
the history. A replay is an operation between two batches; it is kept small, so that the stream does
not wait for long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headgate.declaration.contracts.operation import is_rejected
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD, LATE
from headgate.declaration.model import Pipeline
from headgate.declaration.names import INPUT, REPLAYED
from headgate.flow.operations.late_replay import replay_document
from headgate.history.loads.requests import LoadRequest
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.load import Load, span_of
from headgate.lake.tables.snapshot import processed
from headgate.lake.tables.state import time_of
from headgate.lake.tables.table import Table

PAIRS_PER_REPLAY = 200_000
SLICE = 60_000_000
"""Microseconds: pairs are counted per minute, so that only few numbers are held in memory."""


class ReplayPlanner:
    """Plans the replays for a load. It only reads."""

    def __init__(self, layout: Layout, pipeline: Pipeline, request: LoadRequest) -> None:
        source = request.source
        table = partial(Table, layout.storage, pipeline=pipeline.name)
        names = [
            name
            for name, each in pipeline.with_late_rows.items()
            if any(pipeline.silver[of].source == source for of in each.inputs)
        ]
        self._source, self._reason = source, request.reason
        self._control = ControlTable.of(layout.storage, pipeline.name)
        self._graph = graph_of(pipeline)
        self._declared = {name: pipeline.gold[name] for name in names}
        self._gold = {name: table(GOLD.path(name)) for name in names}
        self._late = {name: table(LATE.path(name)) for name in names}

    def behind(self, load: Load) -> list[str]:
        """The gold tables that have not processed all of a load, or not carried out its replays."""
        asked = self._control.refresh().operations_of(self._source)
        own = (each for each in asked if each.document.get("load") == load.id)
        numbers = {each.document["table"]: each.number for each in own}
        states = {name: table.refresh() for name, table in self._gold.items()}
        return [
            name
            for name, state in states.items()
            if processed(self._graph, GOLD.path(name), state)[self._source] < load.n
            or state.operation < numbers.get(name, 0)
        ]

    def _reached(self, name: str, load: Load) -> int | None:
        """The event time up to which replays have taken the late rows of a load. Rows that they
        have left out are not tried again."""
        ends = (
            each.document["to"]
            for each in self._control.refresh().operations_of(self._source)
            if each.document.get("load") == load.id and each.document["table"] == name
            if not is_rejected(each.document, name)
        )
        return max(ends, default=None)

    def next_replay(self, load: Load) -> dict[str, Any] | None:
        """The document of the next replay; None if all late rows of the load are folded, or were
        left out because a published backfill has corrected their results. No gold table may be
        ``behind``."""
        for name, late in self._late.items():
            inputs = self._inputs(name)
            if times := _times(late, load, self._reached(name, load), inputs):
                begin, end = first_part(times, PAIRS_PER_REPLAY)
                of: dict[str, Any] = {
                    "offsets": span_of(load.number),
                    "load": load.id,
                    "by": self._reason,
                }
                if inputs is not None:
                    of["inputs"] = inputs
                return replay_document(name, begin, end, **of)
        return None

    def _inputs(self, name: str) -> list[str] | None:
        """The inputs of a table that are of the load's source; None if all are. Loads of two
        sources may have the same offsets."""
        declared = self._declared[name]
        pairs = zip(declared.inputs, declared.sources, strict=True)
        own = [each for each, source in pairs if source == self._source]
        return None if len(own) == len(declared.inputs) else own


def first_part(times: Mapping[int, int], most: int) -> tuple[int, int]:
    """The event times [begin, end) of the first rows, about ``most``. ``times`` is the number of
    rows in each slice of ``SLICE`` microseconds."""
    rows, end = 0, 0
    for end in sorted(times):
        rows += times[end]
        if rows >= most:
            break
    return min(times) * SLICE, (end + 1) * SLICE


def _times(
    late: Table, load: Load, begin: int | None, inputs: Collection[str] | None
) -> Counter[int]:
    """How many late rows of a load with event times from ``begin`` on are not folded yet, in each
    slice of event time. ``inputs`` are those of its source; None for all."""
    late.refresh()
    first, last = span_of(load.number)
    offset = ds.field("_offset")
    is_meant = ds.field(REPLAYED).is_null() & (offset >= first) & (offset <= last)
    if inputs is not None:
        is_meant &= ds.field(INPUT).isin(inputs)
    if begin is not None:
        is_meant &= ds.field("_event_time") >= time_of(begin)
    scanner = late.handle.to_pyarrow_dataset().scanner(columns=["_event_time"], filter=is_meant)
    found: Counter[int] = Counter()
    for batch in scanner.to_batches():
        times = batch.column(0).cast("int64").to_numpy()
        for each in pc.value_counts(pa.array(times // SLICE)).to_pylist() if len(times) else ():
            found[each["values"]] += each["counts"]
    return found
