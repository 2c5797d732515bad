"""``make bench``: warm batches of Headgate beside those of a plain PySpark + Delta job with three
or four queries, for each operator of gold. The two take turns, one batch each.

Wall time on a shared machine is mostly noise. The meaningful numbers are the CPU seconds of the
whole process tree, and the ratios of two batches that ran one after the other. In turns, the wall
time of Headgate contains its trigger of 250 ms; batches without a pause between them do not wait
for it.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.feed import SLICE, write_slices
from tests.benchmarks.headgate_job import OPERATORS
from tests.benchmarks.turns import Lap, Order, laps_in_turns

WARM_UP = int(os.environ.get("HEADGATE_BENCH_WARM_UP", "30"))
MEASURED = int(os.environ.get("HEADGATE_BENCH_SLICES", "20"))
JOBS = {"plain": "plain_job", "headgate": "headgate_job"}


def _report(say: Callable[[str], None], name: str, laps: list[Lap]) -> None:
    rates = sorted(SLICE / lap["cpu"] / 1000 for lap in laps)
    walls = sorted(lap["wall"] for lap in laps)
    say(
        f"{name:10} {statistics.median(rates):6.1f} k events per CPU-second "
        f"(from {rates[0]:.1f} to {rates[-1]:.1f}), batch of {SLICE:,} in "
        f"{statistics.median(walls):.2f} s (from {walls[0]:.2f} to {walls[-1]:.2f})"
    )


@pytest.mark.bench
@pytest.mark.parametrize("operator", OPERATORS)
def test_speed_beside_the_plain_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], operator: str
) -> None:
    def say(text: str) -> None:
        with capsys.disabled():
            print(text)

    say(
        f"\n{operator}: {WARM_UP} slices of {SLICE:,} events to warm up, {MEASURED} measured, "
        "2 cores"
    )
    for name in JOBS:
        write_slices(tmp_path / name / "landing", WARM_UP + MEASURED)
    options = (f"--operator={operator}",)
    orders = {name: Order(module, tmp_path / name, options) for name, module in JOBS.items()}
    laps = laps_in_turns(orders, WARM_UP + MEASURED)
    measured = {name: found[WARM_UP:] for name, found in laps.items()}
    for name, found in measured.items():
        _report(say, name, found)
    pairs = list(zip(measured["plain"], measured["headgate"], strict=True))
    cpu = sorted(plain["cpu"] / ours["cpu"] for plain, ours in pairs)
    wall = sorted(ours["wall"] / plain["wall"] for plain, ours in pairs)
    total = _sum(measured["plain"], "cpu") / _sum(measured["headgate"], "cpu")
    say(
        f"events per CPU-second x {total:.2f} over all batches, x {statistics.median(cpu):.2f} in "
        f"the median of pairs (from {cpu[0]:.2f} to "
        f"{cpu[-1]:.2f}), wall time x {statistics.median(wall):.2f} (from {wall[0]:.2f} to "
        f"{wall[-1]:.2f})"
    )
    ours = measured["headgate"]
    # A window of ten minutes ends in one of 48 batches, and its code may be compiled then.
    if operator not in ("rollup", "join"):
        assert ours[-1]["compilations"] == ours[0]["compilations"], "a batch still compiles code"
    # A join takes steps at intervals, so a batch may be without one.
    assert (total if operator == "join" else statistics.median(cpu)) > 1


def _sum(laps: list[Lap], what: str) -> float:
    return sum(lap[what] for lap in laps)
