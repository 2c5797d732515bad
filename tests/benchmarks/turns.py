"""Jobs that take turns, one batch each, so that a disturbance of the machine affects all alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.machine.jars import java

Lap = dict[str, float]


@dataclass(frozen=True)
class Order:
    """``module`` of ``tests.benchmarks`` runs over ``folder``, which has ``landing``."""

    module: str
    folder: Path
    options: Sequence[str] = ()


def user_environment() -> dict[str, str]:
    """The environment of a user: without the JVM options of tests (tests/conftest.py)."""
    return {k: v for k, v in os.environ.items() if k != java.OPTIONS}


class Job:
    """A job that waits after each batch."""

    def __init__(self, order: Order) -> None:
        self._errors = order.folder / "errors.txt"
        module = [sys.executable, "-m", f"tests.benchmarks.{order.module}", str(order.folder)]
        self.process = subprocess.Popen(
            [*module, "--in-turns", *order.options],
            env=user_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("w"),
            text=True,
        )

    def lap(self) -> Lap:
        """Wait for the next batch, and return what it took. The first one begins without
        ``go_on``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                lap: Lap = json.loads(line)
                return lap
        raise AssertionError(self._errors.read_text()[-3000:])

    def end(self) -> None:
        """Close its standard input and wait for its end: it has no batch left."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        finally:
            self.process.kill()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def _running(order: Order) -> Iterator[Job]:
    job = Job(order)
    try:
        yield job
    finally:
        job.end()


def laps_in_turns(orders: Mapping[str, Order], laps: int) -> dict[str, list[Lap]]:
    """The laps of each job, by name."""
    found: dict[str, list[Lap]] = {name: [] for name in orders}
    with ExitStack() as stack:
        jobs: dict[str, Job] = {}
        for number in range(laps):
            for name, order in orders.items():
                if number:
                    jobs[name].go_on()
                else:
                    jobs[name] = stack.enter_context(_running(order))
                found[name].append(jobs[name].lap())
    return found
