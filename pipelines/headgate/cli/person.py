"""The user who types a command, for commits that record it."""

from __future__ import annotations

import getpass
import os
import socket


def person(note: str = "") -> str:
    """User and host, and the ``note`` of the user. A user without a name, as in many containers, is
    a number."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    who = f"{user}@{socket.gethostname()}"
    return f"{who}: {note}" if note else who
