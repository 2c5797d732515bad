"""What a compacted topic keeps of the messages that a publication has sent."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tables import Row


def kept(file: Path) -> list[Row]:
    """The rows that a compacted topic keeps: the last message of each key, unless it has no
    value. ``file`` has the messages as lines of JSON."""
    last: dict[str, Row | None] = {}
    for line in file.read_text().splitlines():
        message = json.loads(line)
        last[message["key"]] = message["value"]
    return [value for value in last.values() if value is not None]
