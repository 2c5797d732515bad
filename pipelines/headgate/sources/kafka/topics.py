"""One number for every partition of every topic that a pipeline reads.

Bronze's ``partition`` is ``topic's place << 16 | Kafka's partition``. Places are given in the order
in which topics are met and never again, so a topic that is deleted and made anew, whose offsets
begin at 0 once more, has other partitions than before. With one topic the number is Kafka's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BITS = 16


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers list it now; ``id`` is another one when it was made anew."""

    name: str
    id: str
    partitions: int

    @property
    def label(self) -> str:
        """How ``State.topics`` names it."""
        return f"{self.name}@{self.id}"


@dataclass(frozen=True)
class Partition:
    """``number`` is bronze's."""

    topic: str
    partition: int
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


def enrolled(known: Sequence[str], listed: Iterable[Topic]) -> tuple[str, ...]:
    """``State.topics`` with those that are new, by name, at its end."""
    labels = sorted(topic.label for topic in listed)
    return (*known, *(label for label in labels if label not in known))


def partitions(enrolled: Sequence[str], listed: Iterable[Topic]) -> dict[int, Partition]:
    """The partitions of the listed topics, by their numbers."""
    found = {}
    for topic in listed:
        base = base_of(enrolled, topic.label)
        for partition in range(topic.partitions):
            found[base + partition] = Partition(topic.name, partition, base + partition)
    return found


def base_of(enrolled: Sequence[str], label: str) -> int:
    """The number of a topic's partition 0."""
    return enrolled.index(label) << _BITS


def label_of(enrolled: Sequence[str], number: int) -> str:
    """The topic of the partition with a number."""
    return enrolled[number >> _BITS]


def partition_of(enrolled: Sequence[str], number: int) -> Partition:
    """The partition with a number, listed or not."""
    name = label_of(enrolled, number).rpartition("@")[0]
    return Partition(name, number & ((1 << _BITS) - 1), number)
