"""A pipeline that reads Kafka, ``watched.yml``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.broker import Sent

CANARY = "kettle-7391-umbrella"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)

DECLARATION = """
pipeline: watched
sources:
  events:
    kafka:
      servers: {servers}
      {which}: {topic}
      start: {start}
      unreachable_after: 2 s
{options}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, at: timestamp}}
silver:
  clean: {{from: events}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    measures: {{events: count(*)}}
    allowed_lateness: 10 s
"""
LOGIN = """
      options:
        security.protocol: SASL_PLAINTEXT
        sasl.mechanism: PLAIN
        sasl.jaas.config: org.apache.kafka.common.security.plain.PlainLoginModule
          required username="ann" password="${env:PASSWORD}";
"""


def declare(folder: Path, servers: str, topic: str, name: str = "watched", **more: str) -> None:
    values = {"which": "topic", "start": "earliest", "options": "", **more}
    text = DECLARATION.format(servers=servers, topic=topic, **values)
    (folder / f"{name}.yml").write_text(text.replace("pipeline: watched", f"pipeline: {name}"))


def events(first: int, count: int, partition: int | None = None) -> list[Sent]:
    return [
        Sent(
            json.dumps({"id": f"e{i}", "at": (START + timedelta(seconds=i)).isoformat()}).encode(),
            partition=i % 2 if partition is None else partition,
        )
        for i in range(first, first + count)
    ]
