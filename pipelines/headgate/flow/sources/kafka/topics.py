"""Numbers every partition of every topic that a pipeline reads.

Bronze's ``partition`` is ``topic's place << 16 | Kafka's partition``. Topics get places in the
order in which they are first listed. A place is never reused: a topic that is deleted and
recreated, whose offsets begin at 0 again, gets new partitions. With one topic the number is Kafka's
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.flow.sources.kafka.ranges import Offsets

_BITS = 16


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers list it now. A recreated topic has another ``id``."""

    name: str
    id: str
    partitions: int

    @property
    def label(self) -> str:
        """The name in ``State.topics``."""
        return f"{self.name}@{self.id}"


@dataclass(frozen=True)
class TopicPartition:
    """``number`` is bronze's ``partition``."""

    topic: str
    partition: int
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


def enrolled(known: Sequence[str], listed: Iterable[Topic]) -> tuple[str, ...]:
    """``State.topics`` with the new topics appended, by name."""
    labels = sorted(topic.label for topic in listed)
    return (*known, *(label for label in labels if label not in known))


def partitions(enrolled: Sequence[str], listed: Iterable[Topic]) -> dict[int, TopicPartition]:
    """The partitions of the listed topics, by their numbers."""
    found = {}
    for topic in listed:
        base = base_of(enrolled, topic.label)
        for partition in range(topic.partitions):
            found[base + partition] = TopicPartition(topic.name, partition, base + partition)
    return found


def base_of(enrolled: Sequence[str], label: str) -> int:
    """The number of a topic's partition 0."""
    return enrolled.index(label) << _BITS


def label_of(enrolled: Sequence[str], number: int) -> str:
    """The label of the topic to which the partition ``number`` belongs."""
    return enrolled[number >> _BITS]


def topic_of(label: str) -> str:
    """The name of the topic with a label."""
    return label.rpartition("@")[0]


def partition_of(enrolled: Sequence[str], number: int) -> TopicPartition:
    """The partition with a number, listed or not."""
    name = topic_of(label_of(enrolled, number))
    return TopicPartition(name, number & ((1 << _BITS) - 1), number)


@dataclass(frozen=True)
class TopicListing:
    """``topics`` is as in ``State.topics``, including deleted topics. ``ends`` has the ends of the
    listed partitions' logs, ``first`` the starts of partitions that were never read."""

    topics: Sequence[str]
    partitions: Mapping[int, TopicPartition]
    ends: Offsets
    first: Offsets

    @property
    def labels(self) -> frozenset[str]:
        """The topics that are listed now, with the names used in ``topics``."""
        return frozenset(label_of(self.topics, number) for number in self.partitions)

    def position(self, offsets: Offsets) -> dict[int, int]:
        """The position in every listed partition, after a commit at ``offsets``."""
        return {number: offsets.get(number, self.first.get(number, 0)) for number in self.ends}


def decoded_offsets(offsets: Mapping[str, int]) -> dict[int, int]:
    """``State.offsets`` of a Kafka source with partition numbers as integers; JSON has strings."""
    return {int(number): offset for number, offset in offsets.items()}


def encoded_offsets(offsets: Offsets) -> dict[str, int]:
    return {str(number): offset for number, offset in offsets.items()}
