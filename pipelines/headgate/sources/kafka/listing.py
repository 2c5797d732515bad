"""What the brokers list at one moment, and what a pipeline has read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.sources.kafka.ranges import Offsets
from headgate.sources.kafka.topics import Partition, label_of


@dataclass(frozen=True)
class TopicListing:
    """``topics`` as in ``State.topics``, old and gone ones included; ``ends`` are where the
    listed partitions' logs end, ``first`` where those begin that nothing was read of yet."""

    topics: Sequence[str]
    partitions: Mapping[int, Partition]
    ends: Offsets
    first: Offsets

    @property
    def labels(self) -> frozenset[str]:
        """The topics that are listed now, as ``topics`` names them."""
        return frozenset(label_of(self.topics, number) for number in self.partitions)

    def position(self, offsets: Offsets) -> dict[int, int]:
        """Where reading continues in every listed partition, after a commit at ``offsets``."""
        return {number: offsets.get(number, self.first.get(number, 0)) for number in self.ends}


def decoded(offsets: Mapping[str, int]) -> dict[int, int]:
    """``State.offsets`` of a Kafka source: partition numbers, which JSON has as texts."""
    return {int(number): offset for number, offset in offsets.items()}


def encoded(offsets: Offsets) -> dict[str, int]:
    return {str(number): offset for number, offset in offsets.items()}
