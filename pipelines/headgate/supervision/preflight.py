"""Whether a stream could be started here, as `headgate doctor` finds it in the environment of a
driver."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError
from headgate.supervision.local import HEADGATE, driver_environment

_WITHIN = 300.0  # seconds


@dataclass(frozen=True)
class StartProblem:
    """``code`` is the exit code of a driver with this problem. ``commands`` are those in
    ``remedy``."""

    name: str
    reason: str
    remedy: str
    code: int
    commands: tuple[str, ...]


def start_problems(file: Path, root: str, variables: Mapping[str, str]) -> tuple[StartProblem, ...]:
    """What would keep a driver of the pipeline from starting now, in the order in which to mend it.
    ``variables`` are further environment variables of drivers. Raises HeadgateError, with the
    output, if `headgate doctor` fails itself or does not end."""
    try:
        done = subprocess.run(
            [*HEADGATE, "doctor", str(file), "--root", root, "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**driver_environment(os.environ), **variables},
            check=False,
            timeout=_WITHIN,
        )
    except subprocess.TimeoutExpired:
        said = f"the checks of `doctor` have not ended within {_WITHIN:.0f} seconds"
        raise HeadgateError(said, shell_command("doctor"), code=exit_codes.UNEXPECTED) from None
    try:
        findings = json.loads(done.stdout.splitlines()[-1])["findings"]
    except (IndexError, ValueError, KeyError):
        said = (
            f"the checks of `doctor` have ended with code {done.returncode}: {done.stderr.strip()}"
        )
        raise HeadgateError(said, shell_command("doctor"), code=exit_codes.UNEXPECTED) from None
    return tuple(
        StartProblem(
            *(each["name"], each["found"], each["remedy"], each["code"]),
            tuple(each["commands"]),
        )
        for each in findings
        if not each["ok"]
    )
