"""What every commit of every table says about itself: the only state there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from headgate.storage.format import FORMAT
from headgate.tables.operation import Operation

Kind = Literal["create", "data", "fence", "operation", "reset", "maintenance"]
Counts = Mapping[str, int]

GENERATION_BITS = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class State:
    """A table's position after a commit.

    ``n`` is the bronze batch up to which the table has absorbed bronze; a data commit absorbs
    ``(from_n, n]``. ``offsets`` is where the source continues, ``clocks`` the watermark of each
    partition and ``watermark`` the watermark, all in microseconds since 1970 UTC (bronze only).
    ``topics`` are the Kafka topics ever read, as ``name@id`` in the order they were met; ``gaps``
    what was lost of them and accepted by a person (bronze only, as the offsets are).
    ``batch`` counts this commit (empty unless data), ``total`` everything since the table began.
    ``changed_at`` is the ``at`` of the last commit that brought something new: to bronze a record,
    to gold a pair that was folded or a row that became final (of these tables only). None where
    there was none, or where it came before commits said so.
    ``closed_through`` is the window end up to which an operation has closed a gold table,
    ``operation`` the number of the last operation that the table went through, ``operations``
    (bronze) all that were ever asked for.
    ``definition`` is the digest of the table's part of the declaration, ``engine`` the versions
    that write it since the last fence. ``files`` is the digest of the live files
    (``tables.checksum``), ``shape`` that of the columns, ``footers`` the checksums of the footers
    of those that the commit added, by path. ``origin`` is, after a reset, the log version whose
    files the table was given back; None where it was emptied. ``reset_commit`` (bronze) is the log
    version of the last commit that asked tables to be reset, and that commit alone says in
    ``reset`` what.
    """

    kind: Kind = "create"
    format: int = FORMAT
    epoch: int = 0
    generation: int = 0
    n: int = 0
    from_n: int = 0
    data_commit: int = 0
    definition: str = ""
    engine: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    watermark: int | None = None
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    batch: Counts = field(default_factory=dict)
    total: Counts = field(default_factory=dict)
    changed_at: int | None = None
    closed_through: int | None = None
    operation: int = 0
    operations: Sequence[Operation] = ()
    files: str = ""
    shape: str = ""
    footers: Mapping[str, int] = field(default_factory=dict)
    origin: int | None = None
    reset_commit: int = 0
    reset: Mapping[str, Any] | None = None
    at: int = 0

    @property
    def transaction_version(self) -> int:
        """The app transaction: the generation first, so that a restore can go back to a lower n."""
        return (self.generation << GENERATION_BITS) | self.n

    @property
    def sequence(self) -> int:
        """Of the last landing file that bronze has absorbed; 0 for none, and of Kafka."""
        return self.offsets.get("sequence", 0)

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def decode(content: Mapping[str, Any]) -> State:
        """Raises TypeError or KeyError where it is not what ``encode`` gives."""
        operations = tuple(Operation(**each) for each in content["operations"])
        return State(**{**content, "operations": operations})

    def held(self, kind: Kind, epoch: int) -> State:
        """The same position under another epoch: what a commit without data carries forward."""
        return replace(
            self, kind=kind, epoch=epoch, from_n=self.n, batch={}, reset=None, origin=None
        )

    def absorbing(self, n: int, at: datetime, **more: Any) -> State:
        """What a commit says that absorbs bronze up to ``n``; its counts come later."""
        more = {"batch": {}, "reset": None, "origin": None, "at": commit_time(at), **more}
        return replace(self, kind="data", from_n=self.n, n=n, **more)

    def counting(self, batch: Counts, *, changed: bool = False) -> State:
        """The state with what its commit counts, added to everything before."""
        changed_at = self.at if changed else self.changed_at
        total = add_counts(self.total, batch)
        return replace(self, batch=batch, total=total, changed_at=changed_at)


def commit_time(now: datetime) -> int:
    """``State.at``: microseconds since 1970 UTC."""
    return int(now.timestamp() * 1_000_000)


def time_of(micros: int) -> datetime:
    """What a state says in microseconds since 1970 UTC: ``at``, a clock, ``closed_through``."""
    return _EPOCH + timedelta(microseconds=micros)


def add_counts(total: Counts, batch: Counts) -> dict[str, int]:
    return {key: total.get(key, 0) + batch.get(key, 0) for key in {*total, *batch}}
