"""Detects records that a topic has lost before they were read, by comparing offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.contracts.source import Session
from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.failures import OffsetsLostError
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import (
    Topic,
    TopicPartition,
    decoded_offsets,
    enrolled,
    label_of,
    partition_of,
    partitions,
    topic_of,
)


@dataclass(frozen=True)
class Loss:
    """Offsets ``[first, end)`` of a partition that can no longer be read. ``end`` is None if it is
    unknown because the topic was deleted or recreated. A truncated log will give the same offsets
    to other records. Bronze would then have two records at one position, so this loss is not
    ``acceptable``."""

    topic: str
    partition: int
    first: int
    end: int | None
    reason: str
    acceptable: bool = True

    def __str__(self) -> str:
        upto = "the end" if self.end is None else f"{self.end - 1:,}"
        return f"{self.topic}/{self.partition}: offsets {self.first:,} to {upto} ({self.reason})"

    def as_dict(self) -> dict[str, Any]:
        """The loss as an entry of ``State.gaps``."""
        return {k: v for k, v in asdict(self).items() if k != "acceptable"}


def losses(
    enrolled: Sequence[str],
    position: Offsets,
    listed: Mapping[int, TopicPartition],
    earliest: Offsets,
    latest: Offsets,
) -> tuple[Loss, ...]:
    """The records after ``position`` that are lost.

    ``position`` has the offsets of the last bronze commit, ``enrolled`` the topics of that commit.
    """
    names = {partition.topic for partition in listed.values()}
    found = []
    for number, offset in sorted(position.items()):
        partition = partition_of(enrolled, number)
        if number not in listed:
            again = partition.topic in names
            reason = "the topic was created again" if again else "the topic is gone"
            found.append(Loss(partition.topic, partition.partition, offset, None, reason))
        elif earliest[number] > offset:
            reason = "expired: the topic kept them no longer"
            first = earliest[number]
            found.append(Loss(partition.topic, partition.partition, offset, first, reason))
        elif latest[number] < offset:
            reason = "the log ends before what was read: it was cut off"
            found.append(
                Loss(partition.topic, partition.partition, latest[number], offset, reason, False)
            )
    return tuple(found)


def lost_error(lost: Sequence[Loss]) -> OffsetsLostError:
    """The error that reports ``lost``."""
    listed = "\n".join(f"  {loss}" for loss in lost)
    remedy = "continue after the gap, which the ledger then reports: "
    remedy += pipeline_command("run", "--accept-gap")
    if not all(loss.acceptable for loss in lost):
        remedy = "the same offsets would be used twice: read the topic into a root of its own: "
        remedy += pipeline_command("run", "--root", NEW_ROOT)
    return OffsetsLostError(f"unread records are lost:\n{listed}", remedy=remedy)


def require_kept(
    partitions: Mapping[int, TopicPartition], position: Offsets, earliest: Offsets, ends: Offsets
) -> None:
    """Raises OffsetsLostError if a load, which reads ``[position, ends)``, needs records that have
    expired. The message says what to do, because only the message of a stopped load is kept."""
    lost = {n: p for n, p in partitions.items() if position[n] < min(earliest[n], ends[n])}
    if not lost:
        return
    said = (
        f"{p}: offsets {position[n]:,} to {min(earliest[n], ends[n]) - 1:,} have expired, and the "
        f"first one that is left is {earliest[n]:,}"
        for n, p in lost.items()
    )
    ranges = ((p, max(position[n], earliest[n]), ends[n]) for n, p in partitions.items())
    left = [f"--kafka {p}:{first}-{end}" for p, first, end in ranges if first < end]
    cancel = pipeline_command("load", "--cancel")
    then = f", and load what is left: {' '.join(left)}" if left else ""
    raise OffsetsLostError(
        f"records were not kept until they were loaded: {'; '.join(said)}. End this load{then}",
        remedy=f"end it, and what it has read stays: {cancel}",
    )


def require_same(enrolled: Sequence[str], read: Iterable[int], there: Iterable[Topic]) -> None:
    """Raises OffsetsLostError if the topic of a partition that was ``read`` has another id among
    the topics that are there now. The records may be those of either."""
    now = {topic.name: topic.label for topic in there}
    for label in {label_of(enrolled, number) for number in read}:
        name = topic_of(label)
        if now.get(name, label) != label:
            raise OffsetsLostError(
                f"{name}: the topic was created again while its first records were read",
                remedy=f"none of them was committed: {pipeline_command('start')}",
            )


def gone_offsets(
    source: KafkaSource, offsets: Mapping[str, int], topics: Sequence[str], session: Session
) -> str | None:
    """A message about lost records after ``offsets`` of ``topics``; None if there are none."""
    with session() as spark:
        cluster = Cluster(spark, source)
        try:
            return gone_from(cluster, offsets, topics)
        finally:
            cluster.close()


def gone_from(cluster: Cluster, offsets: Mapping[str, int], topics: Sequence[str]) -> str | None:
    """As ``gone_offsets``, for a connected cluster."""
    there = cluster.topics()
    listed = partitions(enrolled(topics, there), there)
    first = cluster.offsets(listed.values(), "earliest")
    last = cluster.offsets(listed.values(), "latest")
    return (
        "; ".join(map(str, losses(topics, decoded_offsets(offsets), listed, first, last))) or None
    )
