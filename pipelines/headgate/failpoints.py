"""Named places where a test can kill or freeze the driver.

``HEADGATE_FAILPOINT=NAME[:NTH[:kill|stop|raise]]`` acts at the NTH passage of NAME (default: the
first, kill). Unset, as always outside tests, a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal

_SETTING = os.environ.get("HEADGATE_FAILPOINT", "")
_NAME, _, _REST = _SETTING.partition(":")
_NTH, _, _ACTION = _REST.partition(":")
_passages = 0


class FailpointError(Exception):
    """What ``raise`` raises: an error nobody expected."""


def failpoint(name: str) -> None:
    """Die here (SIGKILL), freeze here (SIGSTOP) or raise, if the environment says so."""
    global _passages
    if name != _NAME:
        return
    _passages += 1
    if _passages != int(_NTH or 1):
        return
    if _ACTION == "raise":
        raise FailpointError(name)
    os.kill(os.getpid(), signal.SIGSTOP if _ACTION == "stop" else signal.SIGKILL)
