"""The Kafka sink: rows as messages of a topic, at least once."""

from __future__ import annotations

from headgate.sinks.kafka.kind import Kafka

MEMBER = Kafka()
