"""Chooses the Python of Spark's workers.

Spark puts its ``pyspark.zip`` at the front of their PYTHONPATH. A zip has no compiled modules, so
each of the six processes before the first batch would compile pyspark again, one after the other:
0.4 seconds each. Therefore a script starts them with the PYTHONPATH of the driver, where pyspark is
compiled.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHOSEN = "PYSPARK_PYTHON"


@contextmanager
def workers_python(scratch: Path) -> Iterator[None]:
    """A session that is started in the ``with`` block starts its workers with the script, which is
    in the folder ``scratch``. Changes nothing if the user has set PYSPARK_PYTHON."""
    if _CHOSEN in os.environ:
        yield
        return
    os.environ[_CHOSEN] = _script(scratch)
    try:
        yield
    finally:
        del os.environ[_CHOSEN]


def _script(scratch: Path) -> str:
    """The script; this Python if scripts cannot be executed, as on a volume with ``noexec``."""
    path = os.environ.get("PYTHONPATH")
    as_here = "unset PYTHONPATH" if path is None else f"export PYTHONPATH={shlex.quote(path)}"
    script = scratch / "python"
    script.write_text(f'#!/bin/sh\n{as_here}\nexec {shlex.quote(sys.executable)} "$@"\n')
    script.chmod(0o755)
    try:
        subprocess.run([script, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return sys.executable
    return str(script)
