"""The contract of sinks for declarations, and their registry.

A sink, such as Kafka, takes the rows of a publication. A member is a package of
``headgate.flow.publish.sinks`` (``headgate.registry``), named like the key under which a
publication says where rows go. ``headgate.flow.publish.sinks.contract`` adds what a member does
when a pipeline runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from headgate.declaration.keys.key import Key
from headgate.declaration.model import Publication
from headgate.declaration.reading.checked import Report, Section
from headgate.registry import Registry

Sink = TypeVar("Sink")


class SinkKind(ABC, Generic[Sink]):
    """A kind of sink. ``Sink`` is its frozen dataclass of where rows go.

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

    @abstractmethod
    def build(self, section: Section, report: Report) -> Sink | None:
        """The sink that the checked keys declare, or None after reporting what is wrong with it."""

    @abstractmethod
    def plan(self, sink: Sink) -> dict[str, Any]:
        """A document of plain values, without secrets."""

    @abstractmethod
    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        """A plan as text for a person: the first line says where rows go."""

    def secrets(self, sink: Sink) -> Iterable[str]:
        """Texts that must never be shown."""
        return ()

    def datasets(self, sink: Sink) -> Iterable[tuple[str, str]]:
        """Namespace and name of what is written, by the naming rules of OpenLineage, without
        secrets."""
        return ()


SINKS: Registry[SinkKind[Any]] = Registry("headgate.flow.publish.sinks", SinkKind)


def sink_of(publication: Publication) -> SinkKind[Any]:
    return SINKS[publication.kind]
