"""What a repair is going to do, decided before it does anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headgate.repair.documents import DamagedDocument
from headgate.repair.findings import Finding
from headgate.repair.logs import Log
from headgate.savepoints.resets import Target

if TYPE_CHECKING:
    from headgate.repair.files_log import Filling


@dataclass(frozen=True)
class Plan:
    """``logs`` are to be cut or to lose damaged checkpoints, ``lost`` to be put aside whole;
    ``targets`` and ``reread`` make the intent of a reset, whose generation is higher than
    ``generation``; ``is_open`` says that a reset was left open, ``is_forgotten`` that nobody can
    read any more what the last one asked for. ``positions`` are versions up to
    which publications count as done. ``told`` says it all in words; ``refusal`` says why nothing
    of it is going to happen."""

    findings: tuple[Finding, ...] = ()
    documents: tuple[DamagedDocument, ...] = ()
    logs: tuple[Log, ...] = ()
    lost: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    reread: Target | None = None
    generation: int = 0
    is_open: bool = False
    is_forgotten: bool = False
    positions: Mapping[str, int] = field(default_factory=dict)
    filling: Filling | None = None
    told: tuple[str, ...] = ()
    refusal: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(
            self.documents
            or self.logs
            or self.lost
            or self.targets
            or self.reread
            or self.is_open
            or self.is_forgotten
            or self.positions
            or self.filling
            or self.refusal
        )

    @property
    def resets(self) -> bool:
        return (
            bool(self.targets)
            or self.is_forgotten
            or self.reread is not None
            or self.generation > 0
        )

    def also(self, documents: Iterable[DamagedDocument]) -> Plan:
        """The plan with documents that were put aside before it was made."""
        found = tuple(documents)
        findings = (*(document.finding for document in found), *self.findings)
        told = (*(document.told for document in found), *self.told)
        return replace(self, findings=findings, documents=(*found, *self.documents), told=told)

    def damage(self) -> Iterator[Finding]:
        """What somebody needs."""
        return (finding for finding in self.findings if not finding.harmless)
