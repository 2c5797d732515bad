"""What the `kafka` sections of sources and publications share: keys, values and plan lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import Section

SERVERS = Key(
    "servers",
    "servers",
    "Bootstrap brokers: `host:port`, several separated by commas.",
    required=True,
    deployment=True,
)
OPTIONS = (
    "Client properties with the names of Kafka's Java client, such as `security.protocol`. A "
    "password or another secret must be a placeholder."
)
NO_INTERCEPTORS = "an interceptor could change records"


@dataclass(frozen=True)
class KafkaSink:
    """``servers`` (host:port, comma separated) and ``options`` are resolved and may contain
    secrets: neither is in the repr. ``written`` has the values of keys with placeholders, as the
    declaration writes them."""

    servers: str = field(repr=False)
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


def options_of(section: Section) -> Mapping[str, str]:
    """The client properties, resolved."""
    return {name: field.text for name, field in section.entries("options").items()}


def written_of(section: Section) -> Mapping[str, str]:
    """The values with placeholders, as the declaration writes them."""
    return {name: field.written for name, field in section.fields.items() if field.written}


def dataset(servers: str, topics: str) -> tuple[str, str]:
    """A topic, or a pattern of topics, as OpenLineage names it: namespace and name."""
    return f"kafka://{servers.partition(',')[0].strip()}", topics


def option_lines(kafka: Mapping[str, Any]) -> list[str]:
    return [f"  options  {', '.join(kafka['options'])}"] if kafka["options"] else []
