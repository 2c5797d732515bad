"""The part of a plan that Kafka sources and Kafka sinks share. It contains only the names of client
properties: a plan contains no secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def option_lines(kafka: Mapping[str, Any]) -> list[str]:
    return [f"  options  {', '.join(kafka['options'])}"] if kafka["options"] else []
