"""A disk that is full: new files can be created, but nothing can be written to them."""

from __future__ import annotations

import subprocess
import sys

_BEFORE = """\
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""


def run_on_full_disk(code: str, *arguments: object) -> str:
    """Run code in a process whose disk is full. Returns the last line of its stderr."""
    command = [sys.executable, "-c", _BEFORE + code, *map(str, arguments)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode, "it did not fail"
    return done.stderr.splitlines()[-1]
