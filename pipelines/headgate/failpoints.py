"""Named places at which a test can kill or freeze a process, or make it fail.

``HEADGATE_FAILPOINT=NAME[:NTH[:kill|stop|raise]]`` acts the NTH time that NAME is passed (default:
the first, kill). ``HEADGATE_FAILPOINT=@FOLDER`` kills a process that passes a place if FOLDER has a
file of this name, and removes the file, so that each place kills once. If the variable is not set,
as always outside tests, a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path


class FailpointError(Exception):
    """Raised by the action ``raise``: an error that no code expects."""


def failpoint(name: str) -> None:
    """Pass the place ``name``: die here (SIGKILL), freeze here (SIGSTOP) or raise, if armed."""
    if _armed is not None:
        _armed(name)


def armed(setting: str) -> Callable[[str], None] | None:
    """The action of a setting, counting passages from now; None for an empty setting."""
    if setting.startswith("@"):
        return partial(_once, Path(setting[1:]))
    place, _, rest = setting.partition(":")
    nth, _, action = rest.partition(":")
    passages = 0

    def act(name: str) -> None:
        nonlocal passages
        passages += name == place
        if name != place or passages != int(nth or 1):
            return
        if action == "raise":
            raise FailpointError(name)
        os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)

    return act if place else None


def _once(folder: Path, name: str) -> None:
    with suppress(FileNotFoundError):
        (folder / name).unlink()
        os.kill(os.getpid(), signal.SIGKILL)


# Tests in one process replace it (tests/support/failing.py).
_armed: Callable[[str], None] | None = armed(os.environ.get("HEADGATE_FAILPOINT", ""))
