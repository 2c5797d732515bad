"""Places at which tests kill processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PASSING = """
from headgate.failpoints import failpoint
for name in ("first", "second", "second"):
    failpoint(name)
"""


def passes(setting: str) -> int:
    environment = {**os.environ, "HEADGATE_FAILPOINT": setting}
    return subprocess.run([sys.executable, "-c", PASSING], check=False, env=environment).returncode


def test_a_process_dies_at_a_passage() -> None:
    assert passes("second:2") == -9
    assert passes("second:3") == 0
    assert passes("first:1:raise") == 1
    assert passes("") == 0


def test_each_place_of_a_folder_kills_one_process(tmp_path: Path) -> None:
    for name in ("first", "second", "never"):
        (tmp_path / name).touch()
    assert [passes(f"@{tmp_path}") for _ in range(3)] == [-9, -9, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["never"]
