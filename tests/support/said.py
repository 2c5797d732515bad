"""Runs commands as a user types them, and returns their output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.cli.main import answer
from tests.support.driver_here import sharing
from tests.support.drivers import PATIENCE

HEADGATE = (sys.executable, "-m", "headgate.cli")


class Said:
    """Runs commands in ``folder``, each in its own process. ``everything`` is all their output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.everything = ""

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self._run(arguments)
        self.everything += done.stdout + done.stderr
        return done

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HEADGATE, *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def json(self, *arguments: str) -> dict[str, Any]:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return document


class SaidHere(Said):
    """Runs commands in this process, because starting one costs as much as most commands do.
    Commands that start Spark need the session that tests share."""

    def __init__(self, folder: Path, spark: SparkSession | None = None) -> None:
        super().__init__(folder)
        self._spark = spark

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        out, err = StringIO(), StringIO()
        shared = nullcontext() if self._spark is None else sharing(self._spark)
        with shared, chdir(self._folder), redirect_stdout(out), redirect_stderr(err):
            code = answer(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
