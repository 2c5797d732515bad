"""Runs a verb of the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from headgate.supervision.local import HEADGATE

_LAST_LINES = 20


def run_verb(
    words: Sequence[str], log: Callable[[str], None], variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a verb; its output goes to ``log``, line by line. ``variables`` are added to its
    environment. Returns the exit code, which is negative if a signal ended the process, and the
    last lines."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        [*HEADGATE, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(variables or {})},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            log(line.rstrip("\n"))
            last.append(line)
    return process.returncode, "".join(last).strip()
