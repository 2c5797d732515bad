"""Checks whether topics still have all records after some offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.declaration.contracts.source import Session
from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.listing import decoded
from headgate.flow.sources.kafka.losses import losses
from headgate.flow.sources.kafka.topics import enrolled, partitions


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
    return "; ".join(map(str, losses(topics, decoded(offsets), listed, first, last))) or None
