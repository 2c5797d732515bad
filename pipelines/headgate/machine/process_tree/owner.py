"""Starts and ends a process tree."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.machine.process_tree import guard, presence
from headgate.machine.process_tree.guard import Order
from headgate.machine.process_tree.members import POLL_EVERY

_SLACK = 60.0  # seconds beyond all graces: a full or slow disk delays the end of a process


@dataclass
class ProcessTree:
    """A tree that this process has started."""

    order: Order
    _guard: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The pid of the guard."""
        return self._guard.pid

    @property
    def code(self) -> int | None:
        """The guard's exit code; None while it runs, 0 after a request to end."""
        return self._guard.poll()

    def end(self) -> None:
        """End the tree, and block until all its processes have ended, also if its guard was killed.
        Does nothing if they have ended already. Raises ProcessTreeError if they do not end."""
        folder = Path(self.order.folder)
        self._guard.terminate()
        try:
            code = self._guard.wait(sum(self.order.graces) + _SLACK)
        except subprocess.TimeoutExpired as error:
            raise presence.unending(folder, self.pid) from error
        if code < 0:
            presence.clear_unless_locked(folder)
        if self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.close()


def start(
    order: Order,
    is_up: Callable[[], bool],
    failure: Callable[[int | None], Exception],
    patience: float,
) -> ProcessTree:
    """Start a tree, and return when it is up. Raises ``failure`` of the guard's exit code, or of
    None after ``patience`` seconds; then nothing is left running."""
    order.log_folder.mkdir(parents=True, exist_ok=True)
    # The guard has its own session: Ctrl-C reaches only the owner, which then ends the guard.
    with (order.log_folder / guard.LOG).open("ab") as sink:
        launched = subprocess.Popen(
            [sys.executable, "-m", guard.__name__],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    tree = ProcessTree(order, launched)
    try:
        assert launched.stdin is not None
        with suppress(BrokenPipeError):  # the exit code is checked below
            launched.stdin.write(order.line())
            launched.stdin.flush()
        deadline = time.monotonic() + patience
        while not is_up():
            if tree.code is not None or time.monotonic() > deadline:
                raise failure(tree.code)
            time.sleep(POLL_EVERY)
    except BaseException:
        tree.end()
        raise
    return tree
