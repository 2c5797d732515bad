"""What a plan says of Kafka. Values that came of placeholders are shown as the declaration writes
them, and of client properties there are only the names: a plan holds no secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.model import KafkaSink, Publication


def planned_publication(publication: Publication) -> dict[str, Any]:
    """A document of plain values."""
    return {
        "from": f"{publication.layer}.{publication.table}",
        "when": publication.when,
        "kafka": _sink(publication.sink),
    }


def _sink(sink: KafkaSink) -> dict[str, Any]:
    places = {"servers": sink.servers, "topic": sink.topic}
    return {**places, **sink.written, "options": sorted(sink.options)}


def publication_lines(publication: Mapping[str, Any]) -> list[str]:
    """A publication as text for a person."""
    kafka, when = publication["kafka"], publication["when"]
    rows = {"final": "of final windows", "update": "of each update of a window"}.get(when, "all")
    return [
        f"  kafka    topic {kafka['topic']} at {kafka['servers']}",
        f"  rows     {rows}",
        *option_lines(kafka),
    ]


def option_lines(kafka: Mapping[str, Any]) -> list[str]:
    return [f"  options  {', '.join(kafka['options'])}"] if kafka["options"] else []
