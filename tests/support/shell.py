"""Runs command lines in one other process, so that its JVM starts only once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.drivers import PATIENCE

_SERVE = """
import sys
from headgate.cli.main import answer
for line in sys.stdin:
    code = answer(line.split())
    for stream in (sys.stderr, sys.stdout):
        stream.flush()
    print(f"exit code {code}", flush=True)
"""


class Shell:
    """Runs one command line after another in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )

    def __call__(self, line: str) -> tuple[int, str]:
        """The exit code and the output of a command line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        said: list[str] = []
        for answer in self._process.stdout:
            if answer.startswith("exit code "):
                return int(answer.split()[-1]), "".join(said)
            said.append(answer)
        raise AssertionError("".join(said))

    def json(self, line: str) -> dict[str, Any]:
        code, said = self(f"{line} --json")
        assert code == 0, said
        document: dict[str, Any] = json.loads(said.splitlines()[-1])
        return document

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
