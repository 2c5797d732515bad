"""The Kafka source: topics of a cluster."""

from __future__ import annotations

from headgate.sources.kafka.kind import Kafka

MEMBER = Kafka()
