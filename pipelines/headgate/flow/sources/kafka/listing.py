"""A listing of topics by the brokers, and positions of a pipeline in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import Partition, label_of


@dataclass(frozen=True)
class TopicListing:
    """``topics`` is as in ``State.topics``, including deleted topics. ``ends`` has the ends of the
    listed partitions' logs, ``first`` the starts of partitions that were never read."""

    topics: Sequence[str]
    partitions: Mapping[int, Partition]
    ends: Offsets
    first: Offsets

    @property
    def labels(self) -> frozenset[str]:
        """The topics that are listed now, with the names used in ``topics``."""
        return frozenset(label_of(self.topics, number) for number in self.partitions)

    def position(self, offsets: Offsets) -> dict[int, int]:
        """The position in every listed partition, after a commit at ``offsets``."""
        return {number: offsets.get(number, self.first.get(number, 0)) for number in self.ends}


def decoded(offsets: Mapping[str, int]) -> dict[int, int]:
    """``State.offsets`` of a Kafka source with partition numbers as integers; JSON has strings."""
    return {int(number): offset for number, offset in offsets.items()}


def encoded(offsets: Offsets) -> dict[str, int]:
    return {str(number): offset for number, offset in offsets.items()}
