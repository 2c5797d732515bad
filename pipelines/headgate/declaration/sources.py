"""The contract of kinds of sources for declarations, and their registry.

A member is a package of ``headgate.flow.sources`` (``headgate.registry``), named like the key under
which a source says what is read. ``headgate.flow.sources.contract`` adds what a member does when a
pipeline runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from headgate.declaration.keys.key import Key
from headgate.declaration.kinds import Kind
from headgate.declaration.model import Record, RecordFormat, Source
from headgate.declaration.reading.checked import Report, Section
from headgate.registry import Registry

Reads = TypeVar("Reads")


class SourceKind(ABC, Generic[Reads]):
    """A kind of source. ``Reads`` is its frozen dataclass of what is read.

    ``key`` has the keys of a declaration. ``not_meant`` are the fields of ``Reads`` that do not
    change which rows a table has: where the source is, how it is reached, how much is read at a
    time. They do not count in digests.

    ``place`` is the column that says where in the source a record was. ``keeps`` are the kinds of
    tables that the source has beside bronze, under its own name. ``needs_jars`` says whether Spark
    needs the jars of ``headgate.machine.jars``. ``has_tombstones`` says whether a record may be
    without a value.
    """

    key: ClassVar[Key]
    place: ClassVar[str]
    not_meant: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[tuple[Kind, ...]] = ()
    needs_jars: ClassVar[bool] = False
    has_tombstones: ClassVar[bool] = False

    @abstractmethod
    def build(self, section: Section, report: Report, project: Path) -> Reads | None:
        """What the checked keys declare, or None after reporting what is wrong with it. Relative
        paths begin at ``project``."""

    def with_record(self, reads: Reads, record: Record) -> Reads:
        """What is read, completed from the declared record."""
        return reads

    @abstractmethod
    def plan(self, reads: Reads) -> dict[str, Any]:
        """A document of plain values, without secrets."""

    @abstractmethod
    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        """A plan as text for a person."""

    def format(self, reads: Reads) -> RecordFormat:
        """How the bytes of one record are written."""
        return "json"

    def secrets(self, reads: Reads) -> Iterable[str]:
        """Texts that must never be shown."""
        return ()

    def datasets(self, reads: Reads) -> Iterable[tuple[str, str]]:
        """Namespace and name of what is read, by the naming rules of OpenLineage."""
        return ()

    def ignores_tombstones(self, reads: Reads) -> bool:
        """Whether records without a value are in bronze alone, and not in quarantine."""
        return False

    def would_read(self, section: Section, sink: object) -> bool:
        """Whether a source with these checked keys reads what goes to a sink of a publication."""
        return False


SOURCES: Registry[SourceKind[Any]] = Registry("headgate.flow.sources", SourceKind)


def kind_of_source(source: Source) -> SourceKind[Any]:
    return SOURCES[source.kind]
