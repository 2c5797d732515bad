"""The account of every event of a pipeline, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headgate.flow.sources.deployed_source import UnreadInput


@dataclass(frozen=True)
class Difference:
    """An invariant (``law``) that does not hold: one side has ``expected``, the other ``found``,
    both as of batch id ``n``."""

    table: str
    law: str
    n: int
    expected: int
    found: int

    def __str__(self) -> str:
        counts = f"expected {self.expected:,}, found {self.found:,}"
        return f"{self.table}: {self.law}: {counts} (batch {self.n:,})"


@dataclass(frozen=True)
class SilverAccount:
    """read = duplicate + quarantined + rejected + silver + filtered, as of the table's own batch
    id ``n``. ``rejected`` rows break a rule of the table's suite. For ``corrected`` of the
    quarantined records, a valid copy came later. ``replaced`` of the rows in silver are copies
    that took the place of a rejected row: to bronze, they are duplicates of it. ``lag`` is the
    number of batches that the table is behind bronze."""

    table: str
    n: int
    lag: int
    read: int
    duplicate: int
    quarantined: int
    corrected: int
    rejected: int
    silver: int
    filtered: int
    replaced: int


@dataclass(frozen=True)
class GoldAccount:
    """pairs = folded + late, in (row, window) pairs. ``replayed`` of the folded pairs were late
    before a replay. ``rows`` counts the rows in the table now; later events cannot change ``final``
    of them."""

    table: str
    silver: str
    n: int
    lag: int
    pairs: int
    folded: int
    late: int
    replayed: int
    rows: int
    final: int


@dataclass(frozen=True)
class AcceptedGap:
    """Offsets ``[first, end)`` of a topic's partition that were lost before they were read. A
    person has accepted the loss. ``end`` is None if it is unknown."""

    topic: str
    partition: int
    first: int
    end: int | None
    reason: str

    @property
    def offsets(self) -> str:
        if self.end is None:
            return f"from {self.first:,} on"
        return f"{self.first:,} to {self.end - 1:,}"


@dataclass(frozen=True)
class Ledger:
    """The whole account. Lag and gaps are shown and are no errors. A difference as of one batch id
    is always an error. ``replayed`` of the records that were read are corrected copies of earlier
    ones. ``files`` is None if the source does not read files."""

    pipeline: str
    n: int
    generation: int
    read: int
    replayed: int
    duplicate: int
    differing: int
    silver: tuple[SilverAccount, ...]
    gold: tuple[GoldAccount, ...]
    files: tuple[UnreadInput, ...] | None
    gaps: tuple[AcceptedGap, ...]
    differences: tuple[Difference, ...]

    @property
    def set_aside(self) -> int:
        """Files that could not be read: their records are missing, and not in the account."""
        return sum(file.status == "set_aside" for file in self.files or ())

    @property
    def balanced(self) -> bool:
        return not self.differences

    @property
    def quarantined(self) -> int:
        """Records in quarantine, as of the batch id of the most advanced silver table."""
        return max((s.quarantined for s in self.silver), default=0)

    @property
    def corrected(self) -> int:
        """Quarantined records, with an id and an event time, whose first valid copy came later and
        was accepted, as of the same batch id."""
        return max((s.corrected for s in self.silver), default=0)

    @property
    def rejected(self) -> int:
        return sum(s.rejected for s in self.silver)

    @property
    def replaced(self) -> int:
        return sum(s.replaced for s in self.silver)

    @property
    def filtered(self) -> int:
        return sum(s.filtered for s in self.silver)

    def as_dict(self) -> dict[str, Any]:
        """A document of plain values."""
        files = {} if self.files is None else {"files": [asdict(f) for f in self.files]}
        return {
            "pipeline": self.pipeline,
            "n": self.n,
            "generation": self.generation,
            "balanced": self.balanced,
            "read": self.read,
            "replayed": self.replayed,
            "duplicate": self.duplicate,
            "differing": self.differing,
            "quarantined": self.quarantined,
            "corrected": self.corrected,
            "silver": {s.table: _without_name(s) for s in self.silver},
            "gold": {g.table: _without_name(g) for g in self.gold},
            **files,
            "gaps": [asdict(gap) for gap in self.gaps],
            "differences": [asdict(d) for d in self.differences],
        }


def _without_name(account: SilverAccount | GoldAccount) -> dict[str, Any]:
    return {k: v for k, v in asdict(account).items() if k != "table"}
