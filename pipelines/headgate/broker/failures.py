"""Why a broker did not come up, from how its JVM ended and what it said last."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headgate.broker import guard, presence
from headgate.broker.errors import (
    BrokerError,
    FolderInUseError,
    NotEnoughMemoryError,
    NotUpError,
    PortTakenError,
)
from headgate.broker.properties import SERVER_LOG, Settings

_TOLD = 8
_WIDE = 300
_NO_MEMORY = re.compile(
    r"insufficient memory|Cannot allocate memory|Could not reserve enough space|OutOfMemoryError"
    r"|errno=12|exceeds? the maximum representable size|unable to create native thread"
)
_NO_PORT = re.compile(r"failed to bind to \S*?:(?P<port>\d+)|Address already in use")
_TELLING = re.compile(r" (WARN|ERROR|FATAL) |^Caused by: |^\S*(Exception|Error)\b")
_NOISE = re.compile(r"\s*$|\s+at ")  # blank, or a frame of a stack
_KILLED = 128 + signal.SIGKILL


def failure(
    folder: Path, settings: Settings, heap_mb: int, code: int | None, seconds: float = 0.0
) -> BrokerError:
    """The error that tells it. ``code`` is the guard's exit code, None where it still runs after
    ``seconds``."""
    if code == guard.IN_USE:
        other = presence.running(folder)
        return FolderInUseError(folder, other.pid if other else None)
    return explain(code, last_words(folder), settings, heap_mb, folder / "logs", seconds)


def explain(
    code: int | None,
    said: Sequence[str],
    settings: Settings,
    heap_mb: int,
    logs: Path,
    seconds: float = 0.0,
) -> BrokerError:
    if code is None:
        return NotUpError(f"did not answer at {settings.servers} in {seconds:.0f} s", said, logs)
    text = "\n".join(said)
    if (match := _NO_PORT.search(text)) is not None:
        return PortTakenError(int(match["port"] or settings.port))
    if _NO_MEMORY.search(text):
        return NotEnoughMemoryError(heap_mb, said)
    if code == _KILLED:
        how = "was killed, by somebody or by the system for lack of memory"
        return NotUpError(how, said, logs)
    return NotUpError(f"ended with exit code {code}", said, logs)


def last_words(folder: Path) -> list[str]:
    """What the JVM printed last, then the last warnings and errors of the broker's log."""
    printed = [line for line in _lines(folder / guard.JVM_LOG) if not _NOISE.match(line)]
    logged = [line for line in _lines(folder / SERVER_LOG) if _TELLING.search(line)]
    return [line.strip()[:_WIDE] for line in (*printed[-_TOLD:], *logged[-_TOLD:])]


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
