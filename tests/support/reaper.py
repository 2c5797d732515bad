"""Ends the processes that tests leave if pytest is killed before their fixtures end, as Ctrl-C does
to the workers of xdist: ``python -m tests.support.reaper FOLDER``.

It waits until its standard input is closed, which also happens when its owner dies. Then it kills
every process with the folder in its arguments or as its working folder: Airflow, drivers, JVMs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds


@contextmanager
def reaping(folder: Path) -> Iterator[None]:
    """No process that uses ``folder`` outlives this process or the end of the block."""
    reaper = subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C does not reach it
    )
    try:
        yield
    finally:
        reaper.communicate()


def knowing(folder: Path) -> list[psutil.Process]:
    """The other processes with the folder, or a path in it, in an argument or as working folder."""
    # /tmp/pytest-10 is not in /tmp/pytest-1.
    named = re.compile(rf"{re.escape(str(folder))}(?![\w-])")
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        told = [*(process.info["cmdline"] or ()), process.info["cwd"] or ""]
        is_dead = process.info["status"] == psutil.STATUS_ZOMBIE
        if not is_dead and process.pid != os.getpid() and any(map(named.search, told)):
            found.append(process)
    return found


def main(folder: str) -> None:
    above = {process.pid for process in psutil.Process().parents()}
    while sys.stdin.buffer.read(4096):
        pass
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        left = [process for process in knowing(Path(folder)) if process.pid not in above]
        if not left:
            return
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
