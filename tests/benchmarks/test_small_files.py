"""``make bench``: a warm batch of 10,000 small files, beside a batch of one file that has the same
events. The two take turns, one batch each.

CPU seconds of the whole process tree are compared, because wall time on a shared machine is mostly
noise.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pytest

from tests.benchmarks.feed import SLICE, SMALL_FILES, write_slices
from tests.benchmarks.turns import Order, laps_in_turns

WARM_UP, MEASURED = 3, int(os.environ.get("HEADGATE_BENCH_SMALL_SLICES", "5"))
MOST = 0.001
"""CPU seconds that a file may cost, in addition to its events."""


@pytest.mark.bench
def test_cost_of_a_small_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slices = WARM_UP + MEASURED
    write_slices(tmp_path / "one" / "landing", slices)
    write_slices(tmp_path / "small" / "landing", slices, files=SMALL_FILES)
    orders = {
        "one": Order("headgate_job", tmp_path / "one"),
        "small": Order("headgate_job", tmp_path / "small", ("--small",)),
    }
    laps = laps_in_turns(orders, slices)
    one, small = ([lap["cpu"] for lap in laps[name][WARM_UP:]] for name in orders)
    costs = sorted((many - single) / SMALL_FILES for single, many in zip(one, small, strict=True))
    with capsys.disabled():
        print(
            f"\n{SLICE:,} events in {SMALL_FILES:,} files: {statistics.median(small):.2f} CPU s a "
            f"batch, in one file {statistics.median(one):.2f}; a file costs "
            f"{statistics.median(costs) * 1000:.2f} ms (from {costs[0] * 1000:.2f} to "
            f"{costs[-1] * 1000:.2f})"
        )
    assert statistics.median(costs) < MOST
