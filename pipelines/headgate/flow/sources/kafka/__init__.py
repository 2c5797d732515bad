"""The Kafka source: topics of a cluster."""

from __future__ import annotations

from headgate.flow.sources.kafka.kind import KafkaConnector

MEMBER = KafkaConnector()
