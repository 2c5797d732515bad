"""``make bench``: how long the batches of a stream take beside two backfills at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.benchmarks.test_latency import GOLD, RATE, Fed, headgate, into, running
from tests.benchmarks.turns import user_environment

BLOCK = 45  # seconds
WARM_UP = 3
BLOCKS = int(os.environ.get("HEADGATE_BENCH_BLOCKS", "6"))
AT_A_TIME = 2  # as many as an Airflow DAG runs
MOST = 2.0
"""The growth of the p95 that fails. The aim is 1.5, which was measured, with this noise: 1.53."""


@contextmanager
def backfilling(folder: Path) -> Iterator[list[int]]:
    """Compute all final windows again and again; the exit codes."""
    command = Path(sys.executable).with_name("headgate")
    declared = (str(folder / "bench.yml"), "--root", str(folder / "lake"))
    over, codes = threading.Event(), list[int]()

    def repeat() -> None:
        while not over.is_set():
            done = subprocess.run(
                [str(command), "backfill", *declared, "--from", "2000-01-01", "--verify"],
                env=user_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            codes.append(done.returncode)

    threads = [threading.Thread(target=repeat) for _ in range(AT_A_TIME)]
    for thread in threads:
        thread.start()
    try:
        yield codes
    finally:
        over.set()
        for thread in threads:
            thread.join()


def batch_times(lake: Path) -> dict[int, float]:
    """Of each batch id, the seconds from the beginning of bronze's step to gold's commit."""
    began, ended = (
        {commit["headgate"]["n"]: commit for commit in DeltaTable(str(table)).history()}
        for table in (lake / "bench/bronze/bids", lake / "bench/gold/bids_per_minute")
    )
    return {
        n: ended[n]["timestamp"] / 1e3 - began[n]["headgate"]["at"] / 1e6
        for n in began.keys() & ended.keys()
    }


@pytest.mark.bench
def test_batches_beside_backfills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "landing").mkdir()
    command = headgate(tmp_path, "files: {path: landing, format: json, settle: 0 s}")
    ends, codes = [0], list[int]()
    with running(tmp_path, *command) as process:
        job = Fed(process, tmp_path / GOLD, into(tmp_path), every=1, freezes=False)

        def feed() -> None:
            job.feed(BLOCK)
            job.wait()
            ends.append(max(batch_times(tmp_path / "lake")))

        for _ in range(WARM_UP):
            feed()
        for _ in range(BLOCKS):
            feed()
            with backfilling(tmp_path) as found:
                feed()
            codes += found
    took = batch_times(tmp_path / "lake")
    p95 = []
    for first in (WARM_UP, WARM_UP + 1):
        blocks = range(first, len(ends) - 1, 2)
        times = sorted(took[n] for b in blocks for n in took if ends[b] < n <= ends[b + 1])
        p95.append(times[len(times) * 95 // 100])
        with capsys.disabled():
            print(
                f"\n{'alone' if first == WARM_UP else 'beside backfills':17} {RATE:,} events/s: "
                f"{len(times)} batches, p50 {times[len(times) // 2]:.2f} s, p95 {p95[-1]:.2f} s",
                end="",
            )
    with capsys.disabled():
        print(f"\np95 x {p95[1] / p95[0]:.2f} beside {len(codes)} backfills")
    assert {*codes} == {0}
    assert p95[1] < MOST * p95[0]
