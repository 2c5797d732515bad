"""What Kafka sources and Kafka sinks share of a plan and of lineage. Both have only the names of
client properties: they contain no secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def dataset(servers: str, topics: str) -> tuple[str, str]:
    """A topic, or a pattern of topics, as OpenLineage names it: namespace and name."""
    return f"kafka://{servers.partition(',')[0].strip()}", topics


def option_lines(kafka: Mapping[str, Any]) -> list[str]:
    return [f"  options  {', '.join(kafka['options'])}"] if kafka["options"] else []
