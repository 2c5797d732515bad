"""The contract of sinks, and their registry.

A sink, such as Kafka, takes the rows of a publication. A member is a package of
``headgate.flow.publish.sinks`` (``headgate.registry``), named like the key under which a
publication says where rows go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from headgate.declaration.keys.key import Key
from headgate.declaration.model import Publication
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.registry import Registry

if TYPE_CHECKING:
    from headgate.flow.publish.sinks.letters import Letter
    from headgate.flow.publish.sinks.writers import Mirror, SinkContext, Writer

Declared = TypeVar("Declared")


class Sink(ABC, Generic[Declared]):
    """A kind of sink. ``Declared`` is its frozen dataclass of where rows go, kept as
    ``Publication.sink``.

    ``key`` has the keys of a declaration; ``place`` is the name of the one that says where in the
    sink rows go. ``needs_jars`` says whether Spark needs the jars of ``headgate.machine.jars``.
    ``accepts`` ends the sentence "what is missing is sent as soon as", ``check_hint`` says what to
    do until then.
    """

    key: ClassVar[Key]
    place: ClassVar[str]
    needs_jars: ClassVar[bool] = False
    accepts: ClassVar[str]
    check_hint: ClassVar[str]

    # When a declaration is read.

    @abstractmethod
    def build(self, section: Section, report: ProblemReport) -> Declared | None:
        """The sink that the checked keys declare, or None after reporting what is wrong with it."""

    @abstractmethod
    def plan(self, sink: Declared) -> dict[str, Any]:
        """A document of plain values, without secrets."""

    @abstractmethod
    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        """A plan as text for a person: the first line says where rows go."""

    def secrets(self, sink: Declared) -> Iterable[str]:
        """Texts that must never be shown."""
        return ()

    def datasets(self, sink: Declared) -> Iterable[tuple[str, str]]:
        """Namespace and name of what is written, by the naming rules of OpenLineage, without
        secrets."""
        return ()

    # When a pipeline runs.

    @abstractmethod
    def writer(self, sink: Declared, context: SinkContext) -> Writer | Mirror:
        """The writer or mirror of a publication for one run of a driver. It connects at its first
        use, so that an unreachable sink does not delay a start."""

    def reset(self, sink: Declared, context: SinkContext) -> str | None:
        """Forget the position and remove the rows of a publication, so that it begins with the
        first row. Returns what was done; None if the sink has no position of its own. Raises
        SinkRefusalError."""
        return None

    def resend(self, sink: Declared, letter: Letter) -> str | None:
        """Send a dead letter once more, now. Returns why it is refused again; None if it was
        accepted. Raises SinkAwayError, and NoLettersError if the sink keeps no dead letters."""
        from headgate.flow.publish.sinks.writers import NoLettersError

        raise NoLettersError


SINKS: Registry[Sink[Any]] = Registry("headgate.flow.publish.sinks", Sink)


def sink_of(publication: Publication) -> Sink[Any]:
    """The sink of a publication."""
    return SINKS[publication.kind]
