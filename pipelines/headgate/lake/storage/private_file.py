"""A local file that only this user can read, such as that of a password."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


def create_private(path: Path, text: str, is_kept: Callable[[str], bool]) -> bool:
    """Create a file, readable by this user only. Returns False if ``path`` is a file already whose
    text ``is_kept``: then it stays. Of several processes, the first one creates it; the others
    wait.

    The file appears with its whole text or not at all, also if the disk is full (OSError), or the
    process or the machine ends.
    """
    if _is_kept(path, is_kept):  # needs no space on the disk
        return False
    with FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):
        if _is_kept(path, is_kept):
            return False
        draft = path.with_name(f"{path.name}.tmp")
        try:
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return True


def _is_kept(path: Path, is_kept: Callable[[str], bool]) -> bool:
    try:
        return is_kept(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return False
