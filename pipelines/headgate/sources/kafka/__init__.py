"""The Kafka source: topics, which are logs already."""

from __future__ import annotations

from headgate.sources.kafka.kind import Kafka

MEMBER = Kafka()
