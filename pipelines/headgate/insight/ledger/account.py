"""The account of every event of a pipeline, as plain values."""

from __future__ import annotations

from collections.abc import Collection
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
    id ``n``. In a table that explodes an array: read = duplicate + quarantined + empty + exploded,
    and items = rejected + silver + filtered, for the items of the records that are ``exploded``.
    ``rejected`` rows break a rule of the table's suite. For ``corrected`` of the
    quarantined records, a valid copy came later. ``replaced`` of the rows in silver are copies
    that took the place of a rejected row: to bronze, they are duplicates of it. ``lag`` is the
    number of batches that the table is behind the bronze table of its source."""

    table: str
    source: str
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
    empty: int | None = None
    exploded: int | None = None
    items: int | None = None

    @property
    def accounted(self) -> int:
        """The records that have an outcome."""
        rest = self.rejected + self.silver + self.filtered
        if self.exploded is not None:
            rest = self.exploded + (self.empty or 0)
        return self.duplicate + self.quarantined + rest


@dataclass(frozen=True)
class GoldAccount:
    """pairs = folded + late, in (row, window) pairs. ``replayed`` of the folded pairs were late
    before a replay. ``rows`` counts the rows in the table now; later events cannot change ``final``
    of them."""

    table: str
    source: str
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
class SourceAccount:
    """What was read from a source, as of the batch id ``n`` of its bronze table. ``replayed``
    of the records are corrected copies of earlier ones. ``differing`` of the duplicates have
    other content. ``quarantined`` counts the records in quarantine, as of the batch id of the
    source's most advanced silver table. For ``corrected`` of them, which have an id and an
    event time, the first valid copy came later and was accepted. ``files`` is None if the
    source does not read files."""

    source: str
    n: int
    read: int
    replayed: int
    duplicate: int
    differing: int
    quarantined: int
    corrected: int
    files: tuple[UnreadInput, ...] | None
    gaps: tuple[AcceptedGap, ...]

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        del found["source"]
        if self.files is None:
            del found["files"]
        return found


_SUMMED = ("read", "replayed", "duplicate", "differing", "quarantined", "corrected")


@dataclass(frozen=True)
class Ledger:
    """The whole account. Lag and gaps are shown and are no errors. A difference as of one batch id
    is always an error. Counts without a source are sums over all sources. ``generation`` is that of
    the newest reset that a table has carried out."""

    pipeline: str
    generation: int
    sources: tuple[SourceAccount, ...]
    silver: tuple[SilverAccount, ...]
    gold: tuple[GoldAccount, ...]
    differences: tuple[Difference, ...]

    @property
    def has_several_sources(self) -> bool:
        return len(self.sources) > 1

    @property
    def batches(self) -> int:
        """The batches of all sources; the batch id, if there is one source."""
        return sum(each.n for each in self.sources)

    @property
    def read(self) -> int:
        return sum(each.read for each in self.sources)

    @property
    def replayed(self) -> int:
        return sum(each.replayed for each in self.sources)

    @property
    def duplicate(self) -> int:
        return sum(each.duplicate for each in self.sources)

    @property
    def differing(self) -> int:
        return sum(each.differing for each in self.sources)

    @property
    def quarantined(self) -> int:
        return sum(each.quarantined for each in self.sources)

    @property
    def corrected(self) -> int:
        return sum(each.corrected for each in self.sources)

    @property
    def gaps(self) -> tuple[AcceptedGap, ...]:
        return tuple(gap for each in self.sources for gap in each.gaps)

    @property
    def set_aside(self) -> int:
        """Files that could not be read: their records are missing, and not in the account."""
        files = (file for each in self.sources for file in each.files or ())
        return sum(file.status == "set_aside" for file in files)

    @property
    def balanced(self) -> bool:
        return not self.differences

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
        """A document of plain values. With several sources, what belongs to one of them is in
        ``sources``, and each table names its source."""
        if self.has_several_sources:
            counts = {name: getattr(self, name) for name in _SUMMED}
            own: dict[str, Any] = {"sources": {s.source: s.as_dict() for s in self.sources}}
            left_out: tuple[str, ...] = ("table",)
        else:
            (source,) = self.sources
            counts, own = {}, source.as_dict()
            left_out = ("table", "source")
        return {
            "pipeline": self.pipeline,
            "generation": self.generation,
            "balanced": self.balanced,
            **counts,
            **own,
            "silver": {s.table: _without(s, left_out) for s in self.silver},
            "gold": {g.table: _without(g, left_out) for g in self.gold},
            "differences": [asdict(d) for d in self.differences],
        }


def _without(account: SilverAccount | GoldAccount, names: Collection[str]) -> dict[str, Any]:
    return {k: v for k, v in asdict(account).items() if k not in names and v is not None}
