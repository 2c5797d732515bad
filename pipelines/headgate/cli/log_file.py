"""Where noise and faults go: a file, so that a terminal shows only what Headgate says."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

_current: Path | None = None


def divert(path: Path) -> None:
    """Send everything that libraries, the JVM and its workers write into ``path`` from now on.

    The JVM inherits this process's streams and writes to them before any logging of its own is
    configured; so the descriptors themselves are redirected. ``sys.stdout`` and ``sys.stderr``
    keep leading to where they led.
    """
    global _current
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout = _kept(sys.stdout.fileno(), 1)
    sys.stderr = _kept(sys.stderr.fileno(), 2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    logging.basicConfig(filename=path, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.captureWarnings(True)
    _current = path


def _kept(current: int, descriptor: int) -> object:
    stream = sys.stdout if descriptor == 1 else sys.stderr
    stream.flush()
    if current != descriptor:
        return stream
    return os.fdopen(
        os.dup(descriptor), "w", buffering=1, encoding="utf-8", errors="backslashreplace"
    )


def record_crash(error: BaseException) -> Path:
    """Append the traceback to the log and return its path."""
    path = _current or _fallback()
    text = "".join(traceback.format_exception(error))
    with path.open("a", encoding="utf-8") as log:
        log.write(f"{datetime.now(UTC).isoformat()} {' '.join(sys.argv)}\n{text}\n")
    return path


def _fallback() -> Path:
    """``~/.cache/headgate/error.log``, or one in the temporary folder where that is read-only."""
    folder = Path.home() / ".cache" / "headgate"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.log").touch()
    except OSError:
        folder = Path(tempfile.gettempdir())
    return folder / "error.log"
