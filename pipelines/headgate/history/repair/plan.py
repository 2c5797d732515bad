"""What a repair will do. The plan is complete before the repair changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headgate.history.repair.documents import DamagedDocument
from headgate.history.repair.findings import Damage
from headgate.history.repair.logs import Log
from headgate.history.savepoints.resets import Target

if TYPE_CHECKING:
    from headgate.history.repair.files_log import Filling


@dataclass(frozen=True)
class Plan:
    """``logs`` are truncated, lose damaged checkpoints, or are put aside as a whole.

    ``targets`` and ``reread`` make the intent of a reset (``resets``), whose generation is higher
    than ``above``; ``is_open`` says that a reset is unfinished. ``positions`` are versions up to
    which publications count as done. ``descriptions`` describe all of this; ``refusal`` is why
    nothing is done.
    """

    findings: tuple[Damage, ...] = ()
    documents: tuple[DamagedDocument, ...] = ()
    logs: tuple[Log, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    reread: Target | None = None
    above: int = 0
    is_open: bool = False
    resets: bool = False
    positions: Mapping[str, int] = field(default_factory=dict)
    filling: Filling | None = None
    descriptions: tuple[str, ...] = ()
    refusal: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.descriptions)

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
