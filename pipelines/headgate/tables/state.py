"""The state that every commit of every table carries. There is no other state."""

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

    ``n`` is the batch id: the table has absorbed bronze up to batch ``n``. A data commit absorbs
    the batch ids ``(from_n, n]``.
    ``offsets`` is where the source continues. ``clocks`` has the watermark of each partition and
    ``watermark`` that of the source, in microseconds since 1970 UTC. ``topics`` are all Kafka
    topics ever read, as ``name@id`` in the order in which they were first listed. ``gaps`` are lost
    records of them that a person has accepted. Only bronze has these.
    ``batch`` has the counts of this commit (empty unless data), ``total`` the sum of all counts.
    ``changed_at`` is the ``at`` of the last commit with something new: in bronze a record, in gold
    a folded pair or a row that became final. None for other tables, and if there was none.
    ``closed_through`` is the window end up to which an operation has closed a gold table.
    ``operation`` is the number of the last operation that the table carried out. ``operations``
    (bronze) are all operations ever requested.
    ``definition`` is the digest of the table's part of the declaration. ``engine`` has the versions
    that have written the table since the last fence. ``files`` is the digest of the live files
    (``tables.checksum``), ``shape`` the digest of the columns. ``footers`` has the checksums of the
    footers of the added files, by path. ``origin`` is, after a reset, the log version whose files
    the table got; None if it was emptied. ``reset_commit`` (bronze) is the log version of the last
    commit that requested resets. Only that commit has ``reset``, which describes them.
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
        """The version of the app transaction. The generation is its high part, so that a restore
        can go back to a lower batch id."""
        return (self.generation << GENERATION_BITS) | self.n

    @property
    def sequence(self) -> int:
        """The sequence of the last landing file that bronze has absorbed; 0 for none or Kafka."""
        return self.offsets.get("sequence", 0)

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def decode(content: Mapping[str, Any]) -> State:
        """Raises TypeError or KeyError if ``content`` is not a result of ``encode``."""
        operations = tuple(Operation(**each) for each in content["operations"])
        return State(**{**content, "operations": operations})

    def held(self, kind: Kind, epoch: int) -> State:
        """The same position under another epoch, for a commit without data."""
        return replace(
            self, kind=kind, epoch=epoch, from_n=self.n, batch={}, reset=None, origin=None
        )

    def absorbing(self, n: int, at: datetime, **more: Any) -> State:
        """The state of a commit that absorbs bronze up to batch id ``n``, still without counts."""
        more = {"batch": {}, "reset": None, "origin": None, "at": commit_time(at), **more}
        return replace(self, kind="data", from_n=self.n, n=n, **more)

    def counting(self, batch: Counts, *, changed: bool = False) -> State:
        """The state with the counts of its commit, which are added to the total."""
        changed_at = self.at if changed else self.changed_at
        total = add_counts(self.total, batch)
        return replace(self, batch=batch, total=total, changed_at=changed_at)


def commit_time(now: datetime) -> int:
    """``State.at``: microseconds since 1970 UTC."""
    return int(now.timestamp() * 1_000_000)


def time_of(micros: int) -> datetime:
    """The time of a state's ``at``, clock or ``closed_through`` (microseconds since 1970 UTC)."""
    return _EPOCH + timedelta(microseconds=micros)


def add_counts(total: Counts, batch: Counts) -> dict[str, int]:
    return {key: total.get(key, 0) + batch.get(key, 0) for key in {*total, *batch}}
