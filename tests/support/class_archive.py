"""The classes that a driver's JVM loads, recorded once for all JVMs of the tests.

``python -m tests.support.class_archive`` runs the demo and lets its JVM write them down as it has
them in memory. Mapping that file takes a quarter off the CPU time of a driver that lives for
seconds; without it, or where it does not fit the JVM or the jars any more, everything runs as ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
QUICK = "-XX:TieredStopAtLevel=1"
"""A JVM of a test lives for seconds: what its optimizing compiler costs never comes back."""


def options() -> str:
    """What the JVMs of tests are started with."""
    if not ARCHIVE.exists():
        return QUICK
    # Another class path, such as a broker's, has no use for the archive, and need not say so.
    silent = "-Xlog:disable -Xlog:all=error:stderr"
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE} -Xshare:auto {silent}"


def record() -> None:
    draft = ARCHIVE.with_name(f".{ARCHIVE.name}.{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        demo = ("demo", "--events", "1000", "--root", str(Path(folder) / "demo"))
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli", *demo],
            env=os.environ | {"JDK_JAVA_OPTIONS": f"{QUICK} -XX:ArchiveClassesAtExit={draft}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        code = process.wait()
        while _lives(process.pid):  # the JVM writes when Python has gone
            time.sleep(0.2)
    if code == 0 and draft.exists():
        draft.replace(ARCHIVE)
    draft.unlink(missing_ok=True)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    record()
