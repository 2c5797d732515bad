"""Who types a command, for commits that keep it."""

from __future__ import annotations

import getpass
import os
import socket


def person() -> str:
    """User and host. A user without a name, as in many containers, is a number."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
