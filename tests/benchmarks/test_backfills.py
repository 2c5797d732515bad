"""``make bench``: how long the batches of a stream take beside two backfills at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.benchmarks.beside import growth_of_p95
from tests.benchmarks.turns import user_environment

AT_A_TIME = 2  # as many as an Airflow DAG runs
MOST = 1.5


@contextmanager
def backfilling(folder: Path) -> Iterator[None]:
    """Compute all final windows again and again."""
    command = Path(sys.executable).with_name("headgate")
    declared = (str(folder / "bench.yml"), "--root", str(folder / "lake"))
    over, codes = threading.Event(), set[int]()

    def repeat() -> None:
        while not over.is_set():
            done = subprocess.run(
                [str(command), "backfill", *declared, "--from", "2000-01-01", "--verify"],
                env=user_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            codes.add(done.returncode)

    threads = [threading.Thread(target=repeat) for _ in range(AT_A_TIME)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert codes == {0}


@pytest.mark.bench
def test_batches_beside_backfills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert growth_of_p95(tmp_path, "beside backfills", backfilling, capsys) < MOST
