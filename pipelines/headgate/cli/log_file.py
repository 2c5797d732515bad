"""The log file. Output of libraries and the JVM goes there, so that the terminal shows only
Headgate's output."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from headgate.cli.hidden import shown
from headgate.cli.json_log import JsonFormatter, JsonStream, active

if TYPE_CHECKING:
    from headgate.lake.storage.layout import Layout

_current: Path | None = None


def divert_to(layout: Layout, job: str) -> Path:
    """Rotate the Spark log of ``job``, and ``divert`` output into it. Call this before anything is
    printed. Returns the log."""
    from headgate.machine.process_tree.rotation import rotate
    from headgate.supervision.logs import spark_log

    log = spark_log(layout, job)
    rotate(log)
    divert(log)
    return log


def divert(path: Path) -> None:
    """Send everything that libraries, the JVM and its workers write into ``path`` from now on.

    The JVM inherits this process's streams and writes to them before any logging of its own is
    configured. Therefore the file descriptors are redirected. ``sys.stdout`` and ``sys.stderr``
    still write to their original destinations.
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
    if json_log := active():
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter(json_log))
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # otherwise each line lost on a full disk prints an error
    _current = path


def _kept(current: int, descriptor: int) -> object:
    stream = sys.stdout if descriptor == 1 else sys.stderr
    if isinstance(stream, JsonStream):
        stream.inner = _moved(stream.inner, current, descriptor)
        return stream
    return _moved(stream, current, descriptor)


def _moved(stream: TextIO, current: int, descriptor: int) -> TextIO:
    stream.flush()
    if current != descriptor:
        return stream
    return os.fdopen(
        os.dup(descriptor), "w", buffering=1, encoding="utf-8", errors="backslashreplace"
    )


def record_crash(error: BaseException) -> Path | None:
    """Append the traceback to the log, or to another file if that fails (a full disk).

    Returns the path of the file; None if no file can be written.
    """
    text = shown("".join(traceback.format_exception(error)))
    for path in (*([_current] if _current else []), *_fallbacks()):
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"{datetime.now(UTC).isoformat()} {' '.join(sys.argv)}\n{text}\n")
            return path
    return None


def _fallbacks() -> Iterator[Path]:
    """``~/.cache/headgate/error.log``, then a file of this user in the temporary folder."""
    with suppress(RuntimeError):  # a user without a home
        yield Path.home() / ".cache" / "headgate" / "error.log"
    yield Path(tempfile.gettempdir()) / f"headgate-error-{os.getuid()}.log"
