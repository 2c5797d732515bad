"""Finds the Java that Spark will use: ``JAVA_HOME`` first, then ``PATH``, as Spark does."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# The Java versions that the pinned Spark supports.
SUPPORTED = (17, 21)

HEAP = "HEADGATE_DRIVER_MEMORY"
"""The heap of a driver's JVM, in the form of ``-Xmx``; 2g if it is not set."""
OPTIONS = "HEADGATE_DRIVER_JAVA_OPTIONS"
"""More options of a driver's JVM. They come last, so they override those of Headgate."""

_LEAST_HEAP = 1 << 30  # with less, Spark does not start or has no room for a batch
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_AMOUNT = re.compile(r"(?P<count>\d+)(?P<unit>[kmgt]?)", re.IGNORECASE)
_NO_REASON = ("Picked up ", "Error occurred during initialization of VM")
_VERSION = re.compile(r'version "(?P<version>(?:1\.)?(?P<major>\d+)[^"]*)"')


@dataclass(frozen=True)
class Java:
    """``version`` is what Java reports, or None if it reports none. ``refusal`` is the reason why
    Java does not start with the settings of a driver; empty if it does."""

    executable: Path
    version: str | None
    major: int | None
    refusal: str = ""


def java_home() -> Path | None:
    """``$JAVA_HOME``; None if it is not set or empty."""
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def executable() -> Path | None:
    """The java that Spark starts, or None. If ``JAVA_HOME`` is wrong, PATH is not searched."""
    home = java_home()
    if home is not None:
        candidate = home / "bin" / "java"
        return candidate if os.access(candidate, os.X_OK) else None
    found = shutil.which("java")
    return Path(found) if found else None


def heap() -> str:
    return os.environ.get(HEAP) or "2g"


def options() -> str:
    return os.environ.get(OPTIONS, "")


def find() -> Java | None:
    """Starts ``java -version`` with the settings of a driver, and without them if that fails
    (blocks for up to 20 seconds each)."""
    path = executable()
    if path is None:
        return None
    refusal, said = _misfit(), ""
    if not refusal:
        said = _said(path, f"-Xmx{heap()}", *shlex.split(options()))
        refusal = _first_words(said)
    match = _VERSION.search(said) or _VERSION.search(_said(path))
    return Java(
        executable=path,
        version=match["version"] if match else None,
        major=int(match["major"]) if match else None,
        refusal="" if _VERSION.search(said) else refusal,
    )


def _misfit() -> str:
    """An error in the settings of a driver that a JVM would not report, or not clearly; empty if
    there is none."""
    amount = _AMOUNT.fullmatch(heap())
    if amount is None:
        return f"{HEAP} is {heap()!r}, but must be an amount such as 1500m or 2g"
    if int(amount["count"]) * _UNITS[amount["unit"].lower()] < _LEAST_HEAP:
        return f"{HEAP} is {heap()}, and a driver needs at least 1g"
    try:
        given = shlex.split(options())
    except ValueError as error:
        return f"{OPTIONS} cannot be read: {error}"
    if any(each.startswith("-Xmx") for each in given):
        return f"{OPTIONS} has -Xmx, and the heap is given by {HEAP}"
    return ""


def _first_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line and not line.startswith(_NO_REASON)]
    return lines[0] if lines else "it printed nothing"


def _said(path: Path, *settings: str) -> str:
    try:
        answer = subprocess.run(
            [str(path), *settings, "-version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
