"""The state that every commit of every table carries. There is no other state.

It is a position, which is the same for all tables, and a payload, which differs by kind of table
(``lake.tables.payloads``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, ClassVar, Literal, Self

from headgate.declaration.kinds import kind_of
from headgate.declaration.names import TimeKind
from headgate.lake.storage.format import FORMAT
from headgate.registry import Registry

Kind = Literal["create", "data", "fence", "operation", "reset", "maintenance", "extend"]
Counts = Mapping[str, int]
ROWS, OPEN_ROWS, FINAL_ROWS = "row", "open row", "final row"
"""The kinds of rows of a table: gold has open and final rows, other tables have only rows."""

GENERATION_BITS = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SourceWatermarks:
    """The watermarks of a source at a batch: that of event times, and that of arrivals. Both are
    microseconds since 1970 UTC, or None if they are not known. ``inputs`` are the batch ids of the
    sources if the batch id is that of an input log."""

    event: int | None = None
    arrival: int | None = None
    inputs: Mapping[str, int] = field(default_factory=dict)

    def of(self, time: TimeKind) -> int | None:
        return self.arrival if time == "arrival" else self.event


NO_WATERMARKS = SourceWatermarks()


@dataclass(frozen=True)
class Payload:
    """What the commits of one kind of table carry beside the position: a frozen dataclass of JSON
    values, each with a default. Without arguments it is the payload of an empty table.

    ``kind`` is its name in the registry, and in commits.
    """

    kind: ClassVar[str]

    @classmethod
    def of(cls, state: State) -> Self:
        """The payload of a state. Raises TypeError if it is of another kind."""
        if not isinstance(state.payload, cls):
            raise TypeError(f"expected the payload of {cls.kind}, not of {state.payload.kind}")
        return state.payload

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> Self:
        """Raises TypeError or KeyError if ``content`` is not a result of ``encode``."""
        return cls(**content)

    def encode(self) -> dict[str, Any]:
        return dict(vars(self))

    def carried(self) -> Self:
        """The part that the next commit repeats; the rest describes this commit alone."""
        return self

    def as_of(self, watermarks: SourceWatermarks) -> Self:
        """The payload of an earlier batch, whose commit is deleted, at watermarks of the
        source."""
        return type(self)()

    def emptied(self) -> Self:
        """The payload after a reset that empties the table."""
        return type(self)()

    def rows(self, counted: int) -> Mapping[str, int]:
        """How many rows of each kind the table has after the commit. ``counted`` is the total of
        the count of its rows (``Kind.counted_as``). A kind whose number is not known is left out.

        A commit adds as many rows as it removes, and those that this number grows by
        (``lake.tables.row_counts``).
        """
        return {ROWS: counted}


PAYLOADS: Registry[Payload] = Registry("headgate.lake.tables.payloads", Payload)
"""The payload of an empty table, by its kind."""


@cache
def _empty_payload(kind: str) -> Payload:
    if (found := PAYLOADS.get(kind)) is None:
        raise ValueError(f"unknown kind of payload: {kind}")
    return found


@dataclass(frozen=True)
class State:
    """A table's position after a commit, and the payload of its kind.

    ``n`` is the batch id: the table has processed bronze up to batch ``n``. A data commit processes
    the batch ids ``(from_n, n]``. ``data_commit`` is the log version of the last commit with data.
    ``batch`` has the counts of this commit (empty unless it is a data commit), ``total`` the sum of
    all counts. ``changed_at`` is the ``at`` of the last commit with something new: in bronze a
    record of the source; in gold a folded pair, a row that became final, or rows that an operation
    changed. It is None before the first such commit, and in all other tables. ``operation`` is the
    number of the last operation that the table carried out, or that bronze requested.
    ``definition`` is the digest of the table's part of the declaration. ``engine`` has the versions
    that have written the table since the last fence. ``files`` is the digest of the live files
    (``checksum.py``), ``shape`` the digest of the columns. ``footers`` has the checksums of the
    footers of the added files, by path. ``origin`` is, after a reset, the log version whose files
    the table got; None if it was emptied. ``at`` is when the work of the commit began. Times are
    microseconds since 1970 UTC.
    """

    payload: Payload
    kind: Kind = "create"
    epoch: int = 0
    generation: int = 0
    n: int = 0
    from_n: int = 0
    data_commit: int = 0
    definition: str = ""
    engine: str = ""
    batch: Counts = field(default_factory=dict)
    total: Counts = field(default_factory=dict)
    changed_at: int | None = None
    operation: int = 0
    files: str = ""
    shape: str = ""
    footers: Mapping[str, int] = field(default_factory=dict)
    origin: int | None = None
    at: int = 0

    @staticmethod
    def empty(path: str) -> State:
        """The state of a table before its first commit."""
        return State(_empty_payload(kind_of(path).payload))

    @property
    def transaction_version(self) -> int:
        """The version of the app transaction. The generation is its high part, so that a restore
        can go back to a lower batch id."""
        return (self.generation << GENERATION_BITS) | self.n

    def rows(self, path: str) -> Mapping[str, int]:
        """As ``Payload.rows``, for the table at a path; empty for a table without rows."""
        key = kind_of(path).counted_as
        return {} if key is None else self.payload.rows(self.total.get(key, 0))

    def encode(self) -> dict[str, Any]:
        payload = {"kind": self.payload.kind, **self.payload.encode()}
        return {**vars(self), "format": FORMAT, "payload": payload}

    @staticmethod
    def decode(content: Mapping[str, Any]) -> State:
        """Raises TypeError, KeyError or ValueError if ``content`` is not a result of ``encode``."""
        payload = dict(content["payload"])
        kind = _empty_payload(payload.pop("kind"))
        position = {key: value for key, value in content.items() if key != "format"}
        return State(**{**position, "payload": kind.decode(payload)})

    def held(self, kind: Kind, epoch: int) -> State:
        """The same position under another epoch, for a commit without data."""
        payload = self.payload.carried()
        return replace(
            self, payload=payload, kind=kind, epoch=epoch, from_n=self.n, batch={}, origin=None
        )

    def advanced_to(self, n: int, at: datetime, payload: Payload | None = None) -> State:
        """The state of a commit that processes bronze up to batch id ``n``, still without counts.
        ``payload`` is the new payload; without it, the table keeps its payload."""
        carried = (payload or self.payload).carried()
        return replace(
            self,
            payload=carried,
            kind="data",
            from_n=self.n,
            n=n,
            batch={},
            origin=None,
            at=commit_time(at),
        )

    def counting(self, batch: Counts, *, changed: bool = False) -> State:
        """The state with the counts of its commit, which are added to the total."""
        changed_at = self.at if changed else self.changed_at
        total = add_counts(self.total, batch)
        return replace(self, batch=batch, total=total, changed_at=changed_at)


def commit_time(now: datetime) -> int:
    """``State.at``: microseconds since 1970 UTC."""
    return (now - _EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    """The time of a state (microseconds since 1970 UTC)."""
    return _EPOCH + timedelta(microseconds=micros)


_MOMENT = timedelta(seconds=1)
"""Commits of one catch-up are less than this after its time. A later commit is that of a clock that
was ahead."""


def just_after(held: State, now: datetime) -> datetime:
    """``now``, or just after the table's last commit if that is of the same moment, because one
    catch-up may make several commits. A publication recognises the rows that a commit has changed
    by their ``updated_at`` (``flow.publish.log_stage``)."""
    last = time_of(held.at)
    return last + timedelta(microseconds=1) if now <= last < now + _MOMENT else now


def add_counts(total: Counts, batch: Counts) -> dict[str, int]:
    return {key: total.get(key, 0) + batch.get(key, 0) for key in {*total, *batch}}
