"""An example of the README, typed in a new clone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.support.said import Said

CLONE = Path(__file__).parents[2]
_HEADGATE = "headgate "


def clone_into(folder: Path) -> Path:
    """The files of the clone that an example needs. Returns ``folder``."""
    for name in ("pipelines/examples", "expectations"):
        shutil.copytree(CLONE / name, folder / name)
    return folder


def type_commands(headgate: Said, folder: Path, shown: str) -> None:
    """Type the commands among what the README shows. Each must end well."""
    for command in re.findall(r"^\$ (.*)$", shown, re.MULTILINE):
        if command.startswith(_HEADGATE):
            verb, *rest = (first or other for first, other in re.findall(r'"(.+?)"|(\S+)', command))
            assert verb == _HEADGATE.strip()
            assert headgate(*rest).returncode == 0, headgate.everything
        else:
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
