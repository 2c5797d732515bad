"""The password of the one user there is at first."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

_BYTES = 12


def made(file: Path, user: str) -> str | None:
    """Writes a new password for ``user``, for this user's eyes only, and returns it; None where
    the file is there already: whoever has seen its password keeps it."""
    password = secrets.token_urlsafe(_BYTES)
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    with os.fdopen(opened, "w", encoding="utf-8") as kept:
        json.dump({user: password}, kept)
    return password
