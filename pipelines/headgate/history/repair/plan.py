"""What an examination finds, and what a repair will do. The plan is complete before the repair
changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from headgate import exit_codes
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.history.repair.documents import DamagedDocument
    from headgate.history.repair.logs import Log
    from headgate.history.savepoints.resets import ResetTarget

DamageKind = Literal["document", "log", "checkpoint", "file", "position"]


class CannotRepairError(HeadgateError, code=exit_codes.LOG_GAP):
    """Something is lost that cannot be rebuilt from any table."""


@dataclass(frozen=True)
class Damage:
    """Something whose content is not what was written. ``place`` is a path under the pipeline's
    folder; ``harmless`` says that nothing needs it any more."""

    place: str
    what: str
    kind: DamageKind
    harmless: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


@dataclass(frozen=True)
class Plan:
    """``documents`` are put aside, and of ``logs`` what is damaged.

    ``targets`` are the tables to reset: they are rebuilt, or finish an unfinished reset. The
    generation of the reset is higher than ``above``. ``goes_back`` are the sources whose bronze has
    lost its newest batches and reads them again, ``replayed`` those whose bronze has ingested a
    replay that no decision is left of. ``positions`` are the versions of their tables
    after which publications continue. ``descriptions`` describe all of this. ``refusal`` is why
    nothing is done, ``way_back`` what a person can do then.
    """

    findings: tuple[Damage, ...] = ()
    documents: tuple[DamagedDocument, ...] = ()
    logs: tuple[Log, ...] = ()
    targets: Mapping[str, ResetTarget] = field(default_factory=dict)
    above: int = 0
    goes_back: frozenset[str] = frozenset()
    replayed: frozenset[str] = frozenset()
    positions: Mapping[str, int] = field(default_factory=dict)
    descriptions: tuple[str, ...] = ()
    refusal: str | None = None
    way_back: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.descriptions) or self.refusal is not None

    @property
    def is_damage(self) -> bool:
        """Whether anything is damaged that is still needed."""
        return not all(finding.harmless for finding in self.findings)

    def also(self, documents: Iterable[DamagedDocument]) -> Plan:
        """The plan with documents that were put aside before the plan was created."""
        found = tuple(documents)
        findings = (*(document.finding for document in found), *self.findings)
        descriptions = (*(document.description for document in found), *self.descriptions)
        return replace(
            self, findings=findings, documents=(*found, *self.documents), descriptions=descriptions
        )
