"""Drivers in processes that a test can kill, freeze and resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.toys import INSTALLED

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 180.0  # seconds: a cold JVM on a busy machine


@dataclass
class Running:
    """A driver that was started; ``end`` waits for it."""

    process: subprocess.Popen[str]

    def end(self, patience: float = PATIENCE) -> Ended:
        try:
            output, _ = self.process.communicate(timeout=patience)
        finally:
            self.kill()
        return Ended(self.process.returncode, output)

    def wait_until_frozen(self, patience: float = PATIENCE) -> None:
        """Wait until the driver has stopped itself at its failpoint."""
        until = time.monotonic() + patience
        while psutil.Process(self.process.pid).status() != psutil.STATUS_STOPPED:
            assert self.process.poll() is None, self.end().output
            assert time.monotonic() < until, "the driver never came to its failpoint"
            time.sleep(0.05)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the driver with its JVM and Python workers, which share their own process group, and
        wait for it. Otherwise a later test would fail because of this process."""
        with self.process, suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Ended:
    code: int
    output: str

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def last_line(self) -> str:
        return self.output.rstrip().rpartition("\n")[2]


def start(declaration: Path, root: Path, *options: str, failpoint: str = "") -> Running:
    """Start a driver that processes the existing input and ends; ``failpoint`` as in
    ``failpoints``."""
    return _started("tests.support.runner", str(declaration), str(root), *options, at=failpoint)


def headgate(verb: str, *arguments: str | Path, failpoint: str = "") -> Ended:
    """Run a command as a person does, until it ends, and print its output."""
    ended = begin(verb, *arguments, failpoint=failpoint).end()
    print(ended.output)
    return ended


def begin(
    verb: str, *arguments: str | Path, failpoint: str = "", module: str = "headgate.cli"
) -> Running:
    """Like ``headgate``, without waiting for the end. ``module`` runs the command line."""
    return _started(module, *verb.split(), *map(str, arguments), at=failpoint)


def _started(module: str, *arguments: str, at: str) -> Running:
    paths = os.pathsep.join(map(str, [REPOSITORY, REPOSITORY / "pipelines", INSTALLED]))
    environment = os.environ | {
        "PYTHONPATH": paths,
        "HEADGATE_FAILPOINT": at,
        "HEADGATE_DRIVER_MEMORY": "1g",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=environment,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return Running(process)


def run(declaration: Path, root: Path, *options: str, failpoint: str = "") -> Ended:
    return start(declaration, root, *options, failpoint=failpoint).end()
