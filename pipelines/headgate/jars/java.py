"""Finds the Java that Spark will use: ``JAVA_HOME`` first, then ``PATH``, as Spark does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What the pinned Spark runs on.
SUPPORTED = (17, 21)

_VERSION = re.compile(r'version "(?P<version>(?:1\.)?(?P<major>\d+)[^"]*)"')


@dataclass(frozen=True)
class Java:
    """``version`` is as it calls itself, or None when it could not be asked."""

    executable: Path
    version: str | None
    major: int | None


def java_home() -> Path | None:
    """``$JAVA_HOME``; set but empty is not set."""
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def executable() -> Path | None:
    """The java that would be started, or None. A wrong ``JAVA_HOME`` hides the one on PATH."""
    home = java_home()
    if home is not None:
        candidate = home / "bin" / "java"
        return candidate if os.access(candidate, os.X_OK) else None
    found = shutil.which("java")
    return Path(found) if found else None


def find() -> Java | None:
    """Starts ``java -version`` (blocks for up to 20 seconds)."""
    path = executable()
    if path is None:
        return None
    match = _VERSION.search(_version_text(path))
    return Java(
        executable=path,
        version=match["version"] if match else None,
        major=int(match["major"]) if match else None,
    )


def _version_text(path: Path) -> str:
    try:
        answer = subprocess.run(
            [str(path), "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
