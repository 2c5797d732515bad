"""A pipeline that reads Kafka, ``watched.yml``, and the commands that a user types of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

from headgate.cli.main import answer
from tests.support.broker import Sent
from tests.support.drivers import PATIENCE

CANARY = "kettle-7391-umbrella"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEADGATE = (sys.executable, "-m", "headgate.cli")

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


class Said:
    """Runs commands in ``folder``, each in a process of its own; ``everything`` is all that they
    wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.everything = ""

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self._run(arguments)
        self.everything += done.stdout + done.stderr
        return done

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HEADGATE, *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def json(self, *arguments: str) -> dict[str, Any]:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return document


class SaidHere(Said):
    """In this process: the start of one costs as much as most commands do. For commands that start
    no Spark."""

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        out, err = StringIO(), StringIO()
        with chdir(self._folder), redirect_stdout(out), redirect_stderr(err):
            code = answer(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


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
