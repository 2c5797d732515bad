"""Named places where a test can kill, freeze or fail whatever passes.

``HEADGATE_FAILPOINT=NAME[:NTH[:kill|stop|raise]]`` acts at the NTH passage of NAME (default: the
first, kill). Unset, as always outside tests, a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


class FailpointError(Exception):
    """Raised by the action ``raise``: an error that no code expects."""


def failpoint(name: str) -> None:
    """Pass the place ``name``: die here (SIGKILL), freeze here (SIGSTOP) or raise, if armed."""
    if _armed is not None:
        _armed(name)


def armed(setting: str) -> Callable[[str], None] | None:
    """The action of a setting, counting passages from now; None for an empty setting."""
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


# Tests in one process replace it (tests/support/failing.py).
_armed: Callable[[str], None] | None = armed(os.environ.get("HEADGATE_FAILPOINT", ""))
