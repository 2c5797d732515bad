"""The password of a dashboard. It is shown once, when it is created; a file stores its hash."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError
from headgate.lake.storage.private_file import create_private

FILE = "password.json"
_N, _R, _P = 1 << 14, 8, 1
_MOST = 1024  # characters of a password that are hashed
_CLOSED = json.dumps({"salt": "", "scrypt": ""})  # no password has an empty hash


class PasswordFileError(HeadgateError, code=exit_codes.USAGE):
    """The file of the hash is missing or damaged."""


def close(folder: Path) -> None:
    """Let no password open a dashboard, unless ``folder`` has a password. So a dashboard can start
    before its password is ``made``. Raises OSError."""
    _create(folder, _CLOSED, _is_whole)


def made(folder: Path, *, anew: bool = False) -> str | None:
    """Create a password; only this user can read the file of its hash. None if ``folder`` has a
    password already, which stays valid. ``anew`` replaces it. Raises OSError; then nothing has
    changed. Call it right before the password is shown: nobody could log in if it was lost."""
    password, salt = secrets.token_urlsafe(12), secrets.token_bytes(16)
    text = json.dumps({"salt": salt.hex(), "scrypt": _hashed(password, salt).hex()})

    def is_kept(other: str) -> bool:
        return not anew and other != _CLOSED and _is_whole(other)

    return password if _create(folder, text, is_kept) else None


class Password:
    """The password of a folder: one that was made since is valid at once. Raises PasswordFileError
    if its file is missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._salt, self._hash = self._read()

    def is_right(self, given: str) -> bool:
        """Takes some 30 ms of a core, whatever is given."""
        with suppress(PasswordFileError):  # it was readable before: that password stays valid
            self._salt, self._hash = self._read()
        return hmac.compare_digest(_hashed(given[:_MOST], self._salt), self._hash)

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return _salt_and_hash(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PasswordFileError(
                f"{self._file}: the password's hash cannot be read",
                remedy="make another password: " + shell_command("dashboard", "--new-password"),
            ) from error


def _create(folder: Path, text: str, is_kept: Callable[[str], bool]) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return create_private(folder / FILE, text, is_kept)


def _salt_and_hash(text: str) -> tuple[bytes, bytes]:
    """Raises ValueError, KeyError or TypeError."""
    kept = json.loads(text)
    return bytes.fromhex(kept["salt"]), bytes.fromhex(kept["scrypt"])


def _is_whole(text: str) -> bool:
    with suppress(ValueError, KeyError, TypeError):
        _salt_and_hash(text)
        return True
    return False


def _hashed(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"), salt=salt, n=_N, r=_R, p=_P, dklen=32
    )
