"""The contract of kinds of sources, and their registry.

A kind of source is called a *connector*, because ``Source`` is a source of a declaration. A member
is a package of ``headgate.flow.sources`` (``headgate.registry``), named like the key under which a
source says what is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from headgate.declaration.keys.key import Key
from headgate.declaration.kinds import Kind
from headgate.declaration.model import Record, RecordFormat, Source
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.registry import Registry

if TYPE_CHECKING:
    from headgate.flow.sources.deployed_source import DeployedSource, UnreadInput
    from headgate.flow.sources.loading import LoadPlan, LoadWanted
    from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.lake.storage.files import Storage
    from headgate.lake.tables.payloads.bronze import BronzePayload
    from headgate.lake.tables.table_schema import TableSchema

Declared = TypeVar("Declared")

Session = Callable[[], AbstractContextManager[Any]]
"""Starts a Spark session; ends it with the context."""


class Connector(ABC, Generic[Declared]):
    """A kind of source. ``Declared`` is its frozen dataclass of what is read, kept as
    ``Source.reads``.

    ``key`` has the keys of a declaration. ``not_meant`` are the fields of ``Declared`` that do not
    change which rows a table has: where the source is, how it is reached, how much is read at a
    time. They do not count in digests.

    ``place`` is the column that says where in the source a record was. ``keeps`` are the kinds of
    tables that the source has beside bronze, under its own name. ``needs_jars`` says whether Spark
    needs the jars of ``headgate.machine.jars``. ``has_tombstones`` says whether a record may be
    without a value. ``title`` names the kind in messages. ``why_no_gap`` is a message, after the
    pipeline's name, that says why ``--accept-gap`` does not apply; None if it does.
    ``has_known_start`` says whether a bronze table without a batch always begins at the same
    record.
    """

    key: ClassVar[Key]
    place: ClassVar[str]
    not_meant: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[tuple[Kind, ...]] = ()
    needs_jars: ClassVar[bool] = False
    has_tombstones: ClassVar[bool] = False
    title: ClassVar[str]
    why_no_gap: ClassVar[str | None] = "reads a source that loses nothing; start it without"
    has_known_start: ClassVar[bool] = True

    # When a declaration is read.

    @abstractmethod
    def build(self, section: Section, report: ProblemReport, project: Path) -> Declared | None:
        """What the checked keys declare, or None after reporting what is wrong with it. Relative
        paths begin at ``project``."""

    def with_record(self, reads: Declared, record: Record) -> Declared:
        """What is read, completed from the declared record."""
        return reads

    @abstractmethod
    def plan(self, reads: Declared) -> dict[str, Any]:
        """A document of plain values, without secrets."""

    @abstractmethod
    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        """A plan as text for a person."""

    def format(self, reads: Declared) -> RecordFormat:
        """How the bytes of one record are written."""
        return "json"

    def secrets(self, reads: Declared) -> Iterable[str]:
        """Texts that must never be shown."""
        return ()

    def datasets(self, reads: Declared) -> Iterable[tuple[str, str]]:
        """Namespace and name of what is read, by the naming rules of OpenLineage."""
        return ()

    def ignores_tombstones(self, reads: Declared) -> bool:
        """Whether records without a value are in bronze alone, and not in quarantine."""
        return False

    def would_read(self, section: Section, sink: object) -> bool:
        """Whether a source with these checked keys reads what goes to a sink of a publication."""
        return False

    # When a pipeline runs.

    def require_apart(self, reads: Declared, root: str, declaration: Path) -> None:
        """Raises SourceError if the place to read from overlaps ``root``, in which the tables of
        pipelines are."""
        return

    def require_input(self, place: DeployedSource, declaration: Path) -> None:
        """Raises SourceError if the place to read from cannot be used: a person has to correct it,
        or the ``declaration``. Raises SourceUnreachableError if it was used before, and is away
        now."""
        return

    def require_unchanged(self, place: DeployedSource, offsets: Mapping[str, int]) -> None:
        """Raises SourceError if the input after ``offsets`` of bronze has changed, as far as this
        can be detected without a JVM. Does not block for long."""
        return

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        """A message about the input after ``offsets`` of ``topics`` (as in ``State``) that can no
        longer be read; None if all can. ``session`` may take seconds."""
        return None

    def missing(self, place: DeployedSource) -> str | None:
        """Why not everything that bronze ever read can be read again; None if it can. Starts no
        JVM."""
        return f"it is not known whether {place.source.name} still has all of it"

    def tables(self, place: DeployedSource) -> tuple[TableSchema, ...]:
        """The tables that the source keeps in addition to bronze, of the kinds in ``keeps``. They
        are fenced like every other table of a pipeline and survive changes of its declaration."""
        return ()

    def unreachable_after(self, reads: Declared) -> timedelta:
        """How long a run with ``once`` waits for a source that does not answer."""
        return timedelta()

    @abstractmethod
    def micro_batches(self, context: SourceContext, at: BronzePayload) -> MicroBatchSource[Any]:
        """The reader of a source while its pipeline runs, which begins at the position ``at``.
        Raises SourceUnreachableError if the source does not answer now, and SourceError."""

    def document(self, place: DeployedSource, where: str | None, value: bytes) -> bytes:
        """A record as the document that a replay reads. ``where`` is its file or topic, ``value``
        its bytes in bronze. A record that cannot be parsed is returned unchanged."""
        return value

    def plan_load(
        self,
        place: DeployedSource,
        wanted: LoadWanted,
        folder: Storage,
        session: Session,
        now: datetime,
    ) -> LoadPlan:
        """Decide what a load of history reads. ``folder`` belongs to it. Raises SourceError."""
        from headgate.flow.sources.errors import SourceError

        raise SourceError(f"{self.title} cannot be loaded", "load files, or a topic")

    def loading(
        self, context: SourceContext, at: BronzePayload, plan: LoadPlan, folder: Storage
    ) -> MicroBatchSource[Any]:
        """The reader of a load, which continues at the position ``at`` and ends at ``plan.ends``.
        Raises SourceError, at once or while reading, if its input has changed."""
        from headgate.flow.sources.errors import SourceError

        raise SourceError(f"{self.title} cannot be loaded", "load files, or a topic")

    def gone_of_load(self, place: DeployedSource, plan: LoadPlan, folder: Storage) -> str | None:
        """A message about the input of a load, up to ``plan.ends``, that can no longer be read;
        None if all can, or if this is unknown. Starts no JVM."""
        return None

    def passed_over(self, place: DeployedSource, folder: Storage) -> Mapping[str, str]:
        """The input that a load could not read, and the reasons."""
        return {}

    def unread(self, place: DeployedSource) -> tuple[UnreadInput, ...] | None:
        """The input that the ledger lists as not read; None if this kind of source has none."""
        return None


CONNECTORS: Registry[Connector[Any]] = Registry("headgate.flow.sources", Connector)


def connector_of(source: Source) -> Connector[Any]:
    """The kind of a source."""
    return CONNECTORS[source.kind]
