"""Writes an input log: the batch ids of the gold tables that read several sources.

Each commit says up to which batch of each source these tables then are, and which watermark they
have. So their batch ids, operations and savepoints work as those of a table with one source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import pyarrow as pa

from headgate.failpoints import failpoint
from headgate.flow.bronze.clocks import lowest_of
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.state import SourceWatermarks, State, time_of
from headgate.lake.tables.table import Table
from headgate.lake.tables.table_schema import TableSchema

_SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC"))])


class InputLog:
    """Only the job that writes bronze has one. ``bronze`` has a reader of the bronze table of each
    source, by the name of the source. ``log`` is the table of the log."""

    def __init__(self, log: Table, bronze: Mapping[str, Table]) -> None:
        self.log, self._bronze = log, bronze

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.log, _SCHEMA, "at")

    def write_to(self, log: Table, bronze: Mapping[str, Table]) -> None:
        """Continue another log: a rebuild, or the table that has taken it over."""
        self.log, self._bronze = log, bronze

    def advance(
        self, idle: Collection[str], returns: Callable[[Collection[str], datetime], None]
    ) -> None:
        """Commit what the sources have delivered since the last commit. ``idle`` are those for
        which the watermark does not wait. If one of them has delivered, ``returns`` is called first
        with the others, and with the time: the tables end a step there.

        Raises CommitRefusedError, FencedError.
        """
        held = InputsPayload.of(state := self.log.refresh())
        bronze = {source: table.refresh() for source, table in self._bronze.items()}
        inputs = {source: each.n for source, each in bronze.items()}
        now = time_of(max(each.at for each in bronze.values()))
        if back := {source for source in idle if inputs[source] != held.inputs.get(source, 0)}:
            idle = sorted({*idle} - back)
            returns(idle, now)
        after = payload_after(held, bronze, idle)
        if after != held:
            self.log.commit(state.advanced_to(state.n + 1, now, after))
            failpoint("inputs.advanced")


def payload_after(
    held: InputsPayload, bronze: Mapping[str, State], idle: Collection[str]
) -> InputsPayload:
    """The payload when the sources are at some states of their bronze tables. The watermark is the
    lowest of those that are not ``idle``, and never goes back."""
    marks = {
        source: BronzePayload.of(state).watermarks
        for source, state in bronze.items()
        if source not in idle
    }
    return InputsPayload(
        {source: state.n for source, state in bronze.items()},
        lowest_of([each.event for each in marks.values()], held.watermark),
        lowest_of([each.arrival for each in marks.values()], held.arrival_watermark),
        holds=min(marks, key=lambda source: _event(marks[source]), default=""),
    )


def _event(marks: SourceWatermarks) -> float:
    return float("-inf") if marks.event is None else marks.event
