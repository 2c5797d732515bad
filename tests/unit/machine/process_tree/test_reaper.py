"""If pytest is killed, the processes that its tests have started end, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.reaper import REPOSITORY
from tests.support.waiting import wait_until

WORKER = """
import subprocess, sys, time
from pathlib import Path
from tests.support.reaper import reaping

with reaping(Path(sys.argv[1])):
    started = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        cwd=sys.argv[1],
        start_new_session=True,
    )
    print(started.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_what_a_killed_worker_has_started_ends(tmp_path: Path) -> None:
    place = tmp_path / "airflow"
    place.mkdir()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(place)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    started = psutil.Process(int(worker.stdout.readline()))
    worker.kill()
    worker.wait()
    wait_until(lambda: not started.is_running(), "it has outlived its worker", 30.0)


def test_it_spares_whom_it_runs_for_and_folders_that_are_named_alike(tmp_path: Path) -> None:
    place, alike = tmp_path / "pytest-1", tmp_path / "pytest-10"
    for folder in (place, alike):
        folder.mkdir()
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeping, cwd=alike) as other:
        code = WORKER.replace("    time.sleep(600)\n", "")
        ended = subprocess.run(
            [sys.executable, "-c", code, str(place)], cwd=REPOSITORY, check=False, text=True
        )
        assert ended.returncode == 0
        assert other.poll() is None
        other.kill()
