"""The control table: the decisions that concern more than one commit, one row each.

A decision has a position among the batches of every source. Bronze's job appends it between two
batches, so no stage has passed its position. A stage reads the position of its upstream tables
first and the decisions second; so it misses none that lies at or before this position
(docs/exactly-once.md). The table is never restored and never reset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any

import pyarrow as pa

from headgate.commands import SEE_DAMAGE
from headgate.declaration.kinds import CONTROL
from headgate.failpoints import failpoint
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import read_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.state import NO_WATERMARKS, SourceWatermarks, State
from headgate.lake.tables.table import Table
from headgate.lake.tables.table_schema import TableSchema

DECISIONS = CONTROL.path("decisions")
"""The path of the control table."""
_FEW = 100
"""A reader that is further behind than so many log entries reads the whole table again."""

AMENDMENT, RESET, REBUILD, REPLAY = "amendment", "reset", "rebuild", "replay"
LOAD, LOAD_CHANGE = "load", "load_change"
IDLE = "idle"
"""The operation that says which sources are idle."""
WITHOUT_PLACE = frozenset({AMENDMENT, RESET, REBUILD, LOAD, LOAD_CHANGE})
"""The kinds of decisions that no table carries out at a place among the batches."""
NO_OPERATIONS = WITHOUT_PLACE | {REPLAY}
"""The kinds of decisions that are not operations on tables."""

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("kind", pa.string()),
        ("request", pa.string()),
        ("position", pa.string()),
        ("document", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class SourcePosition:
    """The batch id of a source's bronze table, and its watermark and arrival watermark there
    (microseconds since 1970 UTC; None if there was none). Those of an input log are the same, with
    the batch ids of its sources (``inputs``). They are repeated here because a log does not keep
    the commit of the batch for ever."""

    n: int
    watermark: int | None = None
    arrival_watermark: int | None = None
    inputs: Mapping[str, int] = field(default_factory=dict)

    @property
    def watermarks(self) -> SourceWatermarks:
        return SourceWatermarks(self.watermark, self.arrival_watermark, self.inputs)

    @staticmethod
    def of(state: State) -> SourcePosition:
        payload = state.payload
        assert isinstance(payload, BronzePayload | InputsPayload)
        marks = payload.watermarks
        return SourcePosition(state.n, marks.event, marks.arrival, marks.inputs)


Position = Mapping[str, SourcePosition]
"""The position of each source and of each input log, by its name."""


def position_of(numbering: Mapping[str, Table]) -> Position:
    """The position now. ``numbering`` has the bronze table of each source, by its name, and the
    input logs."""
    return {name: SourcePosition.of(table.refresh()) for name, table in numbering.items()}


@dataclass(frozen=True)
class Decision:
    """The ``number``-th decision. ``kind`` is the name of an operation, or one of
    ``NO_OPERATIONS``. ``position`` lacks a source that was not declared then. ``document`` has the
    parameters. ``request`` is the id of the request that led to it, if there was one."""

    number: int
    kind: str
    position: Position
    document: Mapping[str, Any]
    at: datetime
    request: str | None = None


@dataclass(frozen=True)
class Operation:
    """An operation as it concerns the tables of one source: it takes place after bronze's batch id
    ``n``, at the ``watermarks`` of that batch. ``name`` is its kind, ``document`` has its
    parameters as they are now."""

    number: int
    name: str
    n: int
    document: Mapping[str, Any]
    watermarks: SourceWatermarks = NO_WATERMARKS
    request: str | None = None


@dataclass(frozen=True)
class Replay:
    """A replay of ``rows`` corrected copies of records of one source. Its bronze table ingests them
    as batch ``n``. ``reason`` says who requested it, and why."""

    number: int
    n: int
    rows: int
    reason: str
    request: str | None = None


Void = Mapping[str, Sequence[int]]
"""The numbers of the operations and replays that are not in force for the tables of a source, by
its name."""


@dataclass(frozen=True)
class Decisions:
    """Some first rows of the control table, in order. ``generation`` is that of the last reset."""

    rows: tuple[Decision, ...] = ()
    generation: int = 0

    @property
    def last(self) -> int:
        """The number of the last decision; 0 if there is none."""
        return self.rows[-1].number if self.rows else 0

    def until(self, number: int) -> Decisions:
        """The decisions up to a number."""
        return Decisions(tuple(each for each in self.rows if each.number <= number))

    def of(self, kind: str) -> tuple[Decision, ...]:
        return tuple(each for each in self.rows if each.kind == kind)

    @property
    def reset(self) -> Decision | None:
        """The last reset; None if no table was ever reset."""
        return next((each for each in reversed(self.rows) if each.kind == RESET), None)

    def decided(self, request: str) -> Decision | None:
        """The decision of a request; None if it is not decided yet."""
        return next((each for each in self.rows if each.request == request), None)

    @cached_property
    def operations(self) -> tuple[Decision, ...]:
        """All operations that were ever decided, each with its document as it is now."""
        now = self._amended
        return tuple(
            replace(each, document=now.get(each.number, each.document))
            for each in self.rows
            if each.kind not in NO_OPERATIONS
        )

    @property
    def placed(self) -> tuple[Decision, ...]:
        """The decisions that have a place among the batches: operations and replays."""
        return tuple(each for each in self.rows if each.kind not in WITHOUT_PLACE)

    def replays_of(self, source: str) -> tuple[Replay, ...]:
        """The replays into the bronze table of a source that are in force, in order. A replay
        without rows is left out: its copies were lost after the decision."""
        void = frozenset(self.void.get(source, ()))
        now = ((each, self._amended.get(each.number, each.document)) for each in self.of(REPLAY))
        return tuple(
            Replay(each.number, at.n + 1, document["rows"], document["reason"], each.request)
            for each, document in now
            if document["source"] == source and document["rows"] and each.number not in void
            for at in (each.position[source],)
        )

    @property
    def void(self) -> Void:
        """The operations that the last reset has left out of force."""
        return self.reset.document["void"] if self.reset else {}

    def is_in_force(self, number: int, source: str) -> bool:
        """Whether the tables of a source carry out an operation."""
        return number not in self.void.get(source, ())

    def operations_of(self, source: str) -> tuple[Operation, ...]:
        """The operations that the tables of a source carry out, in order."""
        void = frozenset(self.void.get(source, ()))
        return tuple(
            Operation(each.number, each.kind, at.n, each.document, at.watermarks, each.request)
            for each in self.operations
            if (at := each.position.get(source)) is not None and each.number not in void
        )

    def idle(self, log: str) -> tuple[str, ...]:
        """The sources of an input log that are idle: tables do not wait for them."""
        own = (each for each in self.operations_of(log) if each.name == IDLE)
        found = [each.document["idle"] for each in own if each.document["log"] == log]
        return tuple(found[-1]) if found else ()

    def ends(self, source: str) -> frozenset[int]:
        """The batch ids of a source at which a step of a stage must end, now or in a rebuild. A
        replay is a step of its own, because it looks up the rows that the tables had before it."""
        own = (each for each in self.of(REPLAY) if each.document["source"] == source)
        replays = {each.position[source].n for each in own}
        asked = (each.position.get(source) for each in self.operations)
        return frozenset(
            replays
            | {n + 1 for n in replays}
            | {at.n for at in asked if at is not None}
            | self.read_by_logs(source)
        )

    def read_by_logs(self, source: str) -> frozenset[int]:
        """The batch ids of a source that input logs have had at decisions. Silver ends a step at
        each, because the tables that read it by such a log do. A log may be behind the source: the
        return of an idle source is decided before the log has its batch."""
        positions = (at for each in self.placed for at in each.position.values())
        return frozenset(at.inputs[source] for at in positions if source in at.inputs)

    @cached_property
    def _amended(self) -> Mapping[int, Mapping[str, Any]]:
        return {
            int(number): document
            for each in self.of(AMENDMENT)
            for number, document in each.document["documents"].items()
        }


NO_DECISIONS = Decisions()


class ControlTable:
    """The rows are kept in memory, and only new ones are read. ``Table.fence`` makes this process
    the writer; other processes only read."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: dict[int, Decision] = {}
        self._version = -1
        self._known = NO_DECISIONS

    @classmethod
    def of(cls, storage: Storage, pipeline: str) -> ControlTable:
        """The control table of a pipeline, whose folder is ``storage``."""
        return cls(Table(storage, DECISIONS, pipeline=pipeline))

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.table, SCHEMA, "at")

    @property
    def exists(self) -> bool:
        return self._version >= 0 or self.table.exists

    def refresh(self) -> Decisions:
        """The decisions now. There are none while there is no table. Raises FencedError,
        LogGapError, DamagedFileError."""
        if not self.exists:
            return self._known
        state = self.table.refresh()
        if self.table.version != self._version:
            self._read(state)
        return self._known

    @property
    def known(self) -> Decisions:
        """The decisions as of the last refresh."""
        return self._known

    def append(
        self,
        kind: str,
        document: Mapping[str, Any],
        position: Position,
        now: datetime,
        *,
        request: str | None = None,
        generation: int | None = None,
    ) -> Decision:
        """Append a decision, in one commit on the version last refreshed. ``position`` was read
        after that refresh, and this process, the only one that may, has committed nothing to bronze
        since. ``generation`` is that of a reset.

        Raises CommitRefusedError, FencedError.
        """
        held = self.table.state
        assert held.n == self._known.last, "the decisions are not those of the table's version"
        decision = Decision(self._known.last + 1, kind, position, document, now, request)
        state = held.advanced_to(decision.number, now).counting({"decisions": 1})
        if generation is not None:
            state = replace(state, generation=generation)
        rows = pa.Table.from_pylist([_row(decision)], SCHEMA)
        self.table.commit(state, add=stage_arrow(self.table, state, rows, time_column="at"))
        self.table.refresh()
        self._rows[decision.number] = decision
        self._version = self.table.version
        self._know(state.generation)
        failpoint("control.decided")
        return decision

    def _read(self, state: State) -> None:
        version = self.table.version
        if state.n > self._known.last:
            files = self._new_files(version)
            for file in files:
                for row in read_sound(self.table.storage, file).to_pylist():
                    self._rows[row["number"]] = _decision(row)
        self._version = version
        self._know(state.generation)
        if self._known.last != state.n or len(self._rows) != state.n:
            raise LogGapError(
                f"{self.table.name}: it has {len(self._rows):,} of {state.n:,} decisions",
                remedy=f"see what is damaged: {SEE_DAMAGE}",
            )

    def _new_files(self, version: int) -> Iterable[DataFile]:
        """The files with the rows that are not known yet, perhaps among others. After a compaction,
        these are all live files, because a vacuum may have removed those that it has merged."""
        if self._version >= 0 and version - self._version <= _FEW:
            try:
                commits = [
                    read_commit(self.table.log, each)
                    for each in range(self._version + 1, version + 1)
                ]
            except LogGapError:  # maintenance has trimmed them
                commits = [None]
            if all(commit is not None and not commit.removed for commit in commits):
                return tuple(file for commit in commits if commit for file in commit.files)
        return with_footers(self.table, version, live_files(self.table.handle))

    def _know(self, generation: int) -> None:
        rows = tuple(sorted(self._rows.values(), key=attrgetter("number")))
        self._known = Decisions(rows, generation)


def _row(decision: Decision) -> dict[str, Any]:
    position = {source: asdict(at) for source, at in decision.position.items()}
    texts = {"position": json.dumps(position), "document": json.dumps(decision.document)}
    return {**vars(decision), **texts}


def _decision(row: Mapping[str, Any]) -> Decision:
    position = {name: SourcePosition(**at) for name, at in json.loads(row["position"]).items()}
    texts = {"position": position, "document": json.loads(row["document"])}
    return Decision(**{**row, **texts})


def void_with(void: Void, more: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    """``void`` with more numbers for some sources."""
    return {
        source: sorted({*void.get(source, ()), *more.get(source, ())})
        for source in {**void, **more}
    }
