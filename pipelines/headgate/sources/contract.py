"""What a kind of source does when a pipeline runs: the whole contract of a member.

A member is a package of ``headgate.sources`` or an entry point of that group. Spark is imported
inside the methods that need it: verbs that start no JVM ask members, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.declaration.model import Source
from headgate.declaration.sources import Reads, SourceKind
from headgate.registry import Registry

if TYPE_CHECKING:
    from headgate.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.storage.files import Storage
    from headgate.tables.table_schema import TableSchema

Session = Callable[[], AbstractContextManager[Any]]
"""Starts a Spark session; ends it with the context."""


@dataclass(frozen=True)
class DeployedSource:
    """The source of a pipeline and where its tables are. ``pipeline`` is its name."""

    storage: Storage
    pipeline: str
    source: Source


@dataclass(frozen=True)
class UnreadInput:
    """Input that is not read (again): set aside as unreadable, skipped by a person, or withdrawn:
    skipped after it had been read, so that bronze has its records."""

    sequence: int
    path: str
    status: str
    reason: str


class Connector(SourceKind[Reads]):
    """``title`` names the kind in messages. ``is_remote`` says whether the source may not answer:
    a start that gets no answer is given up. ``why_no_gap`` says why ``--accept-gap`` does not
    apply, in words that follow the pipeline's name; None where it does. ``has_known_start`` says
    whether a bronze table without a batch always begins at the same record."""

    title: ClassVar[str]
    is_remote: ClassVar[bool] = False
    why_no_gap: ClassVar[str | None] = "reads a source that loses nothing; start it without"
    has_known_start: ClassVar[bool] = True

    def remark(self, reads: Reads, declaration: Path) -> str | None:
        """A remark about input that is still to come. Raises SourceError where none can come."""
        return None

    def require_input(self, reads: Reads, declaration: Path) -> None:
        """Raises SourceError where there is no place to read from yet."""
        return

    def require_unchanged(self, place: DeployedSource, offsets: Mapping[str, int]) -> None:
        """Raises SourceError where what lies behind ``offsets`` of bronze is not what it was, as
        far as that shows without a JVM. Does not block for long."""
        return

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        """What can no longer be read of all that came after ``offsets`` (of ``topics``, as
        ``State`` has both), in words; None if it is all there. ``session`` may take seconds."""
        return None

    def holds_all(self, place: DeployedSource) -> bool:
        """Whether all that bronze ever read can be read again. Starts no JVM; False where that
        cannot be known."""
        return False

    def tables(self, place: DeployedSource) -> tuple[TableSchema, ...]:
        """The tables that the source keeps beside bronze, of ``keeps``. They are fenced like
        every other table of a pipeline and survive changes of its declaration."""
        return ()

    @abstractmethod
    def micro_batches(self, context: SourceContext) -> MicroBatchSource:
        """What reads a source while its pipeline runs. Blocks until it knows where to begin; may
        commit to bronze where it begins. Raises SourceError."""

    def unread(self, place: DeployedSource) -> tuple[UnreadInput, ...] | None:
        """What the ledger lists as not read; None where the source has nothing of the kind."""
        return None


CONNECTORS: Registry[Connector[Any]] = Registry("headgate.sources", Connector)


def connector_of(source: Source) -> Connector[Any]:
    return CONNECTORS[source.kind]
