"""Jobs that take turns, a batch each: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

Lap = dict[str, float]


class Job:
    """``headgate_job`` with some options, waiting after each batch."""

    def __init__(self, folder: Path, options: Sequence[str]) -> None:
        self._errors = folder / "errors.txt"
        # Tests have a JVM of their own kind (tests/conftest.py); this is one as users have it.
        environment = {k: v for k, v in os.environ.items() if k != "JDK_JAVA_OPTIONS"}
        module = [sys.executable, "-m", "tests.benchmarks.headgate_job", str(folder)]
        self.process = subprocess.Popen(
            [*module, "--in-turns", *options],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("w"),
            text=True,
        )

    def lap(self) -> Lap:
        """What the next batch took. It has begun already if it is the first."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                lap: Lap = json.loads(line)
                return lap
        raise AssertionError(self._errors.read_text()[-3000:])

    def end(self) -> None:
        """It finds nothing more to read, and ends."""
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
def _running(folder: Path, options: Sequence[str]) -> Iterator[Job]:
    job = Job(folder, options)
    try:
        yield job
    finally:
        job.end()


def laps_in_turns(
    folders: Mapping[str, tuple[Path, Sequence[str]]], laps: int
) -> dict[str, list[Lap]]:
    """The laps of each job, by name, from its folder with ``landing`` and its options."""
    found: dict[str, list[Lap]] = {name: [] for name in folders}
    with ExitStack() as stack:
        jobs: dict[str, Job] = {}
        for number in range(laps):
            for name, (folder, options) in folders.items():
                if number:
                    jobs[name].go_on()
                else:
                    jobs[name] = stack.enter_context(_running(folder, options))
                found[name].append(jobs[name].lap())
    return found
