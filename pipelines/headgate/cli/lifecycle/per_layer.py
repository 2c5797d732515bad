"""``jobs: per_layer``: three processes, one per layer; if one fails, all are stopped."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from headgate import exit_codes
from headgate.cli.driving import on_signals
from headgate.cli.lifecycle.concluding import AlreadyRecordedError
from headgate.driver.task import Task
from headgate.lake.control.ownership import LAYERS
from headgate.supervision.local import HEADGATE

POLL_EVERY = 0.2  # seconds


_OF_SOURCES = (exit_codes.SOURCE, exit_codes.LOG_GAP)
"""The exit codes of a job that has processed all sources but those that are held."""


class LayerFailedError(AlreadyRecordedError):
    """A layer's process ended with an error, which it has printed itself."""

    def __init__(self, layer: str, code: int) -> None:
        super().__init__(
            f"the {layer} job ended with exit code {code}",
            remedy="its own message is above: fix that, and run again; every table continues",
            code=max(code, exit_codes.FAILED),
        )


def run_layers(task: Task, more: Sequence[str]) -> bool:
    """Run the three jobs of a task, each with ``more`` options. With ``once`` they run one after
    the other, each over all of its input.

    Returns False if one was asked to end before it was done. The first failure stops the others.
    But if some of several sources are held, later layers process what the others have.
    Raises LayerFailedError with the exit code of the first job that failed.
    """
    commands = {}
    for layer in LAYERS:
        options = ["--once"] * task.once + ["--take-over"] * task.take_over
        options += ["--drain"] * (task.drain and layer == "bronze")
        options += ["--accept-gap"] * (task.accept_gap and layer == "bronze")
        place = [str(task.pipeline.file), "--layer", layer, "--root", task.root]
        commands[layer] = [*HEADGATE, "run", *place, *more, *options]
    if not task.once:
        return together(commands)
    failed: LayerFailedError | None = None
    for layer in LAYERS:
        try:
            if not together({layer: commands[layer]}):
                return False
        except LayerFailedError as error:
            if len(task.pipeline.sources) == 1 or error.exit_code not in _OF_SOURCES:
                raise
            failed = failed or error
    if failed is not None:
        raise failed
    return True


def together(commands: Mapping[str, Sequence[str]]) -> bool:
    """Run processes until all have ended; False if one was asked to end before it was done."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    asked: list[int] = []

    def stop(number: int = signal.SIGTERM) -> None:
        asked.append(number)
        for process in running.values():
            if process.poll() is None:
                process.send_signal(number)

    failed: tuple[str, int] | None = None
    with on_signals(stop):
        for name, command in commands.items():
            # Each has its own session, so that Ctrl-C reaches it only once: this process forwards
            # it.
            running[name] = subprocess.Popen(command, start_new_session=True)
        if asked:  # while a process was started, which was not told
            stop(asked[0])
        while any(p.poll() is None for p in running.values()):
            failed = failed or _failure(running)
            if failed and not asked:
                stop()
            time.sleep(POLL_EVERY)
    failed = failed or _failure(running)
    if failed is not None:
        raise LayerFailedError(*failed)
    return not asked and all(p.returncode != exit_codes.INTERRUPTED for p in running.values())


def _failure(running: Mapping[str, subprocess.Popen[bytes]]) -> tuple[str, int] | None:
    well = (None, exit_codes.OK, exit_codes.INTERRUPTED)
    return next(((n, p.returncode) for n, p in running.items() if p.poll() not in well), None)
