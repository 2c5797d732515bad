"""Measures how long the batches of a stream take alone and beside another load, in turns."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.benchmarks.test_latency import GOLD, RATE, Fed, headgate, into, running

BLOCK = 45  # seconds
WARM_UP = 3
BLOCKS = int(os.environ.get("HEADGATE_BENCH_BLOCKS", "6"))

Beside = Callable[[Path], AbstractContextManager[Any]]
"""Runs the other load. The folder has the pipeline ``bench.yml`` and its root ``lake``."""


def growth_of_p95(
    folder: Path, name: str, beside: Beside, capsys: pytest.CaptureFixture[str]
) -> float:
    """The p95 of the batch times beside the load, divided by the p95 alone. Prints both."""
    (folder / "landing").mkdir()
    command = headgate(folder, "files: {path: landing, format: json, settle: 0 s}")
    ends = [0]
    with running(folder, *command) as process:
        job = Fed(process, folder / GOLD, into(folder), every=1, freezes=False)

        def feed() -> None:
            job.feed(BLOCK)
            job.wait()
            ends.append(max(batch_times(folder / "lake")))

        for _ in range(WARM_UP):
            feed()
        for _ in range(BLOCKS):
            feed()
            with beside(folder):
                feed()
    took = batch_times(folder / "lake")
    p95 = []
    for first in (WARM_UP, WARM_UP + 1):
        blocks = range(first, len(ends) - 1, 2)
        times = sorted(took[n] for b in blocks for n in took if ends[b] < n <= ends[b + 1])
        p95.append(times[len(times) * 95 // 100])
        with capsys.disabled():
            print(
                f"\n{'alone' if first == WARM_UP else name:17} {RATE:,} events/s: {len(times)} "
                f"batches, p50 {times[len(times) // 2]:.2f} s, p95 {p95[-1]:.2f} s",
                end="",
            )
    with capsys.disabled():
        print(f"\np95 x {p95[1] / p95[0]:.2f} {name}")
    return p95[1] / p95[0]


def batch_times(lake: Path) -> dict[int, float]:
    """For each batch id, the seconds from the beginning of bronze's step to gold's commit."""
    began, ended = (
        {commit["headgate"]["n"]: commit for commit in DeltaTable(str(table)).history()}
        for table in (lake / "bench/bronze/bids", lake / "bench/gold/bids_per_minute")
    )
    return {
        n: ended[n]["timestamp"] / 1e3 - began[n]["headgate"]["at"] / 1e6
        for n in began.keys() & ended.keys()
    }
