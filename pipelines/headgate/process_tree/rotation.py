"""Logs that stay bounded. Small, because it lives in processes that do little else."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

KEPT = 10 * 1024 * 1024
"""A log above this many bytes begins anew; what it held is kept as .1"""


def rotate(path: Path) -> None:
    """Let a log that is too long begin anew, also while others write: they append to one and the
    same file, so it is emptied and not replaced. A line that comes in between may be lost. Where
    nothing can be kept, as on a full disk, it stays long: that is the smaller trouble."""
    with suppress(OSError):
        if path.exists() and path.stat().st_size > KEPT:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)


def keep_bounded(paths: Sequence[Path], every: float = 60.0) -> None:
    """Rotate logs from now on, on a thread that ends with the process: drivers run for weeks."""

    def work() -> None:
        while True:
            time.sleep(every)
            for path in paths:
                rotate(path)

    threading.Thread(target=work, name="logs", daemon=True).start()
