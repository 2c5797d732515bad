"""The full contract of a kind of source: the declaration's contract, and the runtime methods.

A member is a package of ``headgate.flow.sources`` or an entry point of that group. Members import
Spark only inside the methods that need it, because commands that start no JVM use members, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.declaration.model import Source
from headgate.declaration.sources import Reads, SourceKind
from headgate.flow.sources.errors import SourceError
from headgate.registry import Registry

if TYPE_CHECKING:
    from datetime import datetime

    from headgate.flow.sources.loading import LoadPlan, LoadWanted
    from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.lake.storage.files import Storage
    from headgate.lake.tables.table_schema import TableSchema

Session = Callable[[], AbstractContextManager[Any]]
"""Starts a Spark session; ends it with the context."""


@dataclass(frozen=True)
class DeployedSource:
    """The source of a pipeline and the location of its tables. ``pipeline`` is its name."""

    storage: Storage
    pipeline: str
    source: Source


@dataclass(frozen=True)
class UnreadInput:
    """Input that is not read (again). It is set aside as unreadable, skipped by a person, or
    withdrawn: skipped after it was read, so that bronze has its records."""

    sequence: int
    path: str
    status: str
    reason: str


class Connector(SourceKind[Reads]):
    """``title`` names the kind in messages. ``why_no_gap`` is a message, after the pipeline's name,
    that says why ``--accept-gap`` does not apply; None if it does. ``has_known_start`` says whether
    a bronze table without a batch always begins at the same record."""

    title: ClassVar[str]
    why_no_gap: ClassVar[str | None] = "reads a source that loses nothing; start it without"
    has_known_start: ClassVar[bool] = True

    def require_apart(self, reads: Reads, root: str, declaration: Path) -> None:
        """Raises SourceError if the place to read from overlaps ``root``, in which the tables of
        pipelines are."""
        return

    def require_input(self, place: DeployedSource, declaration: Path) -> None:
        """Raises SourceError if the place to read from cannot be used: a person has to correct it,
        or the ``declaration``. Raises UnreachableError if it was used before, and is away now."""
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

    def unreachable_after(self, reads: Reads) -> timedelta:
        """How long a run with ``once`` waits for a source that does not answer."""
        return timedelta()

    @abstractmethod
    def micro_batches(self, context: SourceContext) -> MicroBatchSource:
        """The reader of a source while its pipeline runs. It knows where to begin, and may have
        committed this position to bronze. Raises UnreachableError if the source does not answer
        now, and SourceError."""

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
        raise SourceError(f"{self.title} cannot be loaded", "load files, or a topic")

    def loading(self, context: SourceContext, plan: LoadPlan, folder: Storage) -> MicroBatchSource:
        """The reader of a load, which continues at ``context.bronze.offsets`` and ends at
        ``plan.ends``. Raises SourceError, at once or while reading, if its input has changed."""
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
    return CONNECTORS[source.kind]
