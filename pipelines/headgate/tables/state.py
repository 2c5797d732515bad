"""What every commit of every table says about itself: the only state there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

Kind = Literal["create", "data", "fence", "operation"]
Counts = Mapping[str, int]

METADATA_KEY = "headgate"
GENERATION_BITS = 40


@dataclass(frozen=True)
class State:
    """A table's position after a commit.

    ``n`` is the bronze batch up to which the table has absorbed bronze; a data commit absorbs
    ``(from_n, n]``. ``offsets`` is where the source continues, ``clocks`` the event clock of each
    partition and ``closing`` the closing clock, all in microseconds since 1970 UTC (bronze only).
    ``topics`` are the Kafka topics ever read, as ``name@id`` in the order they were met; ``gaps``
    what was lost of them and accepted by a person (bronze only, as the offsets are).
    ``batch`` counts this commit (empty unless data), ``total`` everything since the table began.
    ``closed_through`` is the window end up to which an operation has closed a gold table.
    """

    kind: Kind = "create"
    epoch: int = 0
    generation: int = 0
    n: int = 0
    from_n: int = 0
    data_commit: int = 0
    definition: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    closing: int | None = None
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    batch: Counts = field(default_factory=dict)
    total: Counts = field(default_factory=dict)
    closed_through: int | None = None
    operation: int = 0
    at: int = 0

    @property
    def transaction_version(self) -> int:
        """The app transaction: the generation first, so that a restore can go back to a lower n."""
        return (self.generation << GENERATION_BITS) | self.n

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    def held(self, kind: Kind, epoch: int) -> State:
        """The same position under another epoch: what a commit without data carries forward."""
        return replace(self, kind=kind, epoch=epoch, from_n=self.n, batch={})

    def counting(self, batch: Counts) -> State:
        """The state with what its commit counts, added to everything before."""
        return replace(self, batch=batch, total=add_counts(self.total, batch))


def decode(commit_info: Mapping[str, Any]) -> State | None:
    """The state in a Delta commitInfo; None if somebody else wrote the commit."""
    content = commit_info.get(METADATA_KEY)
    return State(**content) if content else None


def commit_time(now: datetime) -> int:
    """``State.at``: microseconds since 1970 UTC."""
    return int(now.timestamp() * 1_000_000)


def add_counts(total: Counts, batch: Counts) -> dict[str, int]:
    return {key: total.get(key, 0) + batch.get(key, 0) for key in {*total, *batch}}
