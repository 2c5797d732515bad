"""Rotates logs. It imports little, because small processes use it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

KEPT = 10 * 1024 * 1024
"""The limit in bytes. A longer log is copied to .1 and truncated."""


def rotate(path: Path) -> None:
    """Copy and truncate a log that is too long. Other processes append to the same file, so it is
    not replaced; a line written in between may be lost. If the copy fails, as on a full disk, the
    log stays long."""
    with suppress(OSError):
        if path.exists() and path.stat().st_size > KEPT:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)


def keep_bounded(paths: Sequence[Path], every: float = 60.0) -> None:
    """Rotate logs regularly on a daemon thread: drivers run for weeks."""

    def work() -> None:
        while True:
            time.sleep(every)
            for path in paths:
                rotate(path)

    threading.Thread(target=work, name="logs", daemon=True).start()
