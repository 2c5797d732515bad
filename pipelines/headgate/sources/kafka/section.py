"""Builds the `kafka` part of a source from its keys."""

from __future__ import annotations

import re
from typing import Any

from headgate.declaration.kafka.section import options_of, written_of
from headgate.declaration.reading.checked import Field, Report, Section
from headgate.sinks.kafka.declared import KafkaSink
from headgate.sources.kafka.declared import KafkaSource

_MOST, _LEAST = KafkaSource.max_per_batch, KafkaSource.min_per_batch


def build_kafka(section: Section, report: Report) -> KafkaSource | None:
    """The source, or None after reporting what is wrong with it."""
    servers, topic, pattern = (section.get(name) for name in ("servers", "topic", "pattern"))
    start = section.get("start")
    if start and isinstance(start.value, dict) and pattern:
        message = "offsets belong to the partitions of one topic: with pattern, write a time"
        report.add(start.line, start.path, message)
    least = _least(section.get("min_per_batch"), section.get("max_per_batch"), report)
    # Both keys are required; a missing one was reported.
    if servers is None or (topic is None) == (pattern is None):
        return None
    values: dict[str, Any] = {
        name: field.value
        for name, field in section.fields.items()
        if name not in ("servers", "topic", "pattern", "start", "min_per_batch", "options")
    }
    return KafkaSource(
        servers=servers.text,
        topic=topic.text if topic else None,
        pattern=pattern.text if pattern else None,
        start=start.value if start else "earliest",
        min_per_batch=least,
        options=options_of(section),
        written=written_of(section),
        **values,
    )


def would_read(section: Section, sink: KafkaSink) -> bool:
    """Whether the topic of a publication is also read. Two lists of servers with a common broker
    belong to the same cluster."""
    servers = (section.text("servers") or "").split(",")
    if not set(servers) & set(sink.servers.split(",")):
        return False
    pattern = section.text("pattern")
    if pattern is not None:
        return re.fullmatch(pattern, sink.topic) is not None
    return section.text("topic") == sink.topic


def _least(least: Field | None, most: Field | None, report: Report) -> int:
    limit = most.value if most else _MOST
    if least is None:
        return min(_LEAST, limit)
    if least.value > limit:
        given = most.shown if most else f"{_MOST}, its default"
        message = f"min_per_batch ({least.shown}) is more than max_per_batch ({given})"
        report.add(least.line, least.path, message)
    return int(least.value)
