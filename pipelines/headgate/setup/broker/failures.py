"""Why a broker did not start, from the exit code of its JVM and its last output."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from pathlib import Path

from headgate.machine.process_tree import guard, presence
from headgate.setup.broker.errors import (
    BrokerError,
    FolderInUseError,
    NotEnoughMemoryError,
    NotUpError,
    PortTakenError,
)
from headgate.setup.broker.properties import SERVER_LOG

_LINES_SHOWN = 8
_WIDE = 300
_NO_MEMORY = re.compile(
    r"insufficient memory|Cannot allocate memory|Could not reserve enough space|OutOfMemoryError"
    r"|errno=12|exceeds? the maximum representable size|unable to create native thread"
)
_NO_PORT = re.compile(r"failed to bind to \S*?:(?P<port>\d+)|Address already in use")
_RELEVANT = re.compile(r" (WARN|ERROR|FATAL) |^Caused by: |^\S*(Exception|Error)\b")
_NOISE = re.compile(r"\s*$|\s+at ")  # blank, or a frame of a stack
_HOW = {
    None: "did not answer in time",
    guard.NOT_PREPARED: "could not format its folder",
    128 + signal.SIGKILL: "was killed, by somebody or by the system for lack of memory",
}


def failure(folder: Path, port: int, code: int | None) -> BrokerError:
    """The error for a failed start. ``code`` is the guard's exit code, None if it still runs."""
    if code == guard.IN_USE:
        other = presence.running(folder)
        return FolderInUseError(folder, other.guard if other else None)
    output = last_lines(folder / "logs")
    text = "\n".join(output)
    if code is not None and (match := _NO_PORT.search(text)) is not None:
        return PortTakenError(int(match["port"] or port))
    if code is not None and _NO_MEMORY.search(text):
        return NotEnoughMemoryError(output)
    return NotUpError(_HOW.get(code, f"ended with exit code {code}"), output, folder / "logs")


def last_lines(logs: Path) -> list[str]:
    """The last lines of the JVMs' output, then the last warnings and errors of the broker's log."""
    names = (f"{guard.PREPARE}.log", "jvm.log")
    printed = [line for name in names for line in _lines(logs / name) if not _NOISE.match(line)]
    logged = [line for line in _lines(logs / Path(SERVER_LOG).name) if _RELEVANT.search(line)]
    return [line.strip()[:_WIDE] for line in (*printed[-_LINES_SHOWN:], *logged[-_LINES_SHOWN:])]


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
