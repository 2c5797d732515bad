"""What a plan says of Kafka as a source and as a sink. Of client properties there are only the
names: a plan holds no secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def option_lines(kafka: Mapping[str, Any]) -> list[str]:
    return [f"  options  {', '.join(kafka['options'])}"] if kafka["options"] else []
