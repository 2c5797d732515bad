"""The part of a plan that describes topics that are read. Values with placeholders are shown as the
declaration writes them, and client properties by name only, so a plan contains no secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headgate.declaration.kafka.plan import option_lines
from headgate.declaration.quantities import format_duration
from headgate.sources.kafka.declared import KafkaSource


def planned_source(source: KafkaSource) -> dict[str, Any]:
    """A document of plain values."""
    named = {"topic": source.topic} if source.pattern is None else {"pattern": source.pattern}
    places = {"servers": source.servers, **named, "start": _start(source)}
    return {
        **(places | {name: text for name, text in source.written.items() if name in places}),
        "max_per_batch": source.max_per_batch,
        "min_per_batch": source.min_per_batch,
        "batch_target": format_duration(source.batch_target),
        "idle_after": format_duration(source.idle_after),
        "unreachable_after": format_duration(source.unreachable_after),
        "isolation": source.isolation,
        "options": sorted(source.options),
    }


def _start(source: KafkaSource) -> Any:
    start = source.start
    if isinstance(start, datetime):
        return start.isoformat().replace("+00:00", "Z")
    if isinstance(start, Mapping):
        return {str(partition): offset for partition, offset in start.items()}
    return start


def source_lines(kafka: Mapping[str, Any]) -> list[str]:
    """The source as text for a person."""
    what = f"topic {kafka['topic']}" if "topic" in kafka else f"topics like {kafka['pattern']}"
    start = kafka["start"]
    if isinstance(start, dict):
        start = ", ".join(f"{offset} of {partition}" for partition, offset in start.items())
    least, most = kafka["min_per_batch"], kafka["max_per_batch"]
    return [
        f"  kafka    {what} at {kafka['servers']}, {kafka['isolation']}, from {start}",
        f"  batch    at most {most} records, down to {least} if a batch takes longer than "
        f"{kafka['batch_target']}",
        f"  idle     a partition after {kafka['idle_after']}",
        f"  wait     {kafka['unreachable_after']} for brokers that do not answer",
        *option_lines(kafka),
    ]
