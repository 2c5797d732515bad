"""The password of a dashboard. It is shown once, when it is created; a file stores its hash."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError

FILE = "password.json"
_N, _R, _P = 1 << 14, 8, 1
_MOST = 1024  # characters of a password that are hashed


class PasswordFileError(HeadgateError, code=exit_codes.USAGE):
    """The file of the hash is missing or damaged."""


def made(folder: Path, *, anew: bool = False) -> str | None:
    """Create a password; only this user can read the file of its hash. None if ``folder`` has a
    password already, which stays valid. ``anew`` replaces it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    if anew:
        (folder / FILE).unlink(missing_ok=True)
    password, salt = secrets.token_urlsafe(12), secrets.token_bytes(16)
    try:
        opened = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    with os.fdopen(opened, "w", encoding="utf-8") as kept:
        json.dump({"salt": salt.hex(), "scrypt": _hashed(password, salt).hex()}, kept)
    return password


class Password:
    """The password of a folder. Raises PasswordFileError if its file is missing or damaged."""

    def __init__(self, folder: Path) -> None:
        try:
            kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
            self._salt, self._hash = bytes.fromhex(kept["salt"]), bytes.fromhex(kept["scrypt"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PasswordFileError(
                f"{folder / FILE}: the password's hash cannot be read",
                remedy="make another password: " + shell_command("dashboard", "--new-password"),
            ) from error

    def is_right(self, given: str) -> bool:
        """Takes some 30 ms of a core, whatever is given."""
        return hmac.compare_digest(_hashed(given[:_MOST], self._salt), self._hash)


def _hashed(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"), salt=salt, n=_N, r=_R, p=_P, dklen=32
    )
