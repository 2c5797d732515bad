"""The Kafka sink: rows as messages of a topic, at least once."""

from __future__ import annotations

from headgate.flow.publish.sinks.kafka.kind import KafkaSinkKind

MEMBER = KafkaSinkKind()
