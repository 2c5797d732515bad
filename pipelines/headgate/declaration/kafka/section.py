"""The `kafka` part of a source: what its keys mean together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.model import KafkaSource
from headgate.declaration.reading.checked import Field, Report, Section

_MOST, _LEAST = KafkaSource.max_per_batch, KafkaSource.min_per_batch


def build_kafka(section: Section | None, report: Report) -> KafkaSource | None:
    """The source, or None after reporting what is wrong with it."""
    if section is None:
        return None
    servers, topic, pattern = (section.get(name) for name in ("servers", "topic", "pattern"))
    start = section.get("start")
    if start and isinstance(start.value, dict) and pattern:
        message = "offsets belong to the partitions of one topic: with pattern, write a time"
        report.add(start.line, start.path, message)
    least = _least(section.get("min_per_batch"), section.get("max_per_batch"), report)
    # Both were asked for, and what is missing was reported.
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


def options_of(section: Section) -> Mapping[str, str]:
    """The client properties, resolved."""
    return {name: field.text for name, field in section.entries("options").items()}


def written_of(section: Section) -> Mapping[str, str]:
    """The values that came of placeholders, as the declaration writes them."""
    return {name: field.written for name, field in section.fields.items() if field.written}


def _least(least: Field | None, most: Field | None, report: Report) -> int:
    limit = most.value if most else _MOST
    if least is None:
        return min(_LEAST, limit)
    if least.value > limit:
        given = most.shown if most else f"{_MOST}, its default"
        message = f"min_per_batch ({least.shown}) is more than max_per_batch ({given})"
        report.add(least.line, least.path, message)
    return int(least.value)
