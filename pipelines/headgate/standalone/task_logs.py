"""Airflow's own logs, which it never removes: one file per task and attempt, some ten megabytes a
day for each stream that is looked after."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

KEPT = 15 * 86_400.0  # seconds, as in Airflow's own Helm chart
_JUST_MADE = 600.0  # seconds


def groom(folder: Path, now: float) -> None:
    """Remove what nobody has written to for ``KEPT``, and folders that are empty then. ``now`` is
    in seconds since 1970."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            _remove_old(Path(place, name), now - KEPT)
        for name in folders:
            with suppress(OSError):  # not empty
                # A task makes its folder first, then the log in it.
                if Path(place, name).lstat().st_mtime < now - _JUST_MADE:
                    Path(place, name).rmdir()


def _remove_old(file: Path, before: float) -> None:
    with suppress(OSError):
        if file.lstat().st_mtime < before:
            file.unlink()
