"""Removes old log files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_JUST_MADE = 600.0  # seconds


def expire(folder: Path, kept: float, now: float) -> None:
    """Remove files that were not written for ``kept`` seconds, then empty folders. ``now`` is in
    seconds since 1970."""
    for place, folders, files in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in files):
            with suppress(OSError):
                if path.lstat().st_mtime < now - kept:
                    path.unlink()
        for path in (Path(place, name) for name in folders):
            with suppress(OSError):  # not empty
                # Keep a new folder: a writer creates the folder first, then the log in it.
                if path.lstat().st_mtime < now - _JUST_MADE:
                    path.rmdir()
