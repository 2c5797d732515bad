"""``make bench``: what ten row rules cost a warm batch, and what the gate of a gold table costs,
beside the same pipeline without them. The three take turns, one batch each.

CPU seconds of the whole process tree are compared, batch by batch, because wall time on a shared
machine is mostly noise.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.benchmarks.feed import SLICE, write_slices
from tests.benchmarks.test_speed import MEASURED, WARM_UP
from tests.benchmarks.turns import Lap, Order, laps_in_turns

MOST = 1.15
"""What ten rules may cost, as a multiple of a batch without rules."""
JOBS = {"no rules": (), "10 rules": ("--rules",), "a gate": ("--gate",)}


@pytest.mark.bench
def test_cost_of_rules_and_of_a_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {name: tmp_path / name.replace(" ", "-") for name in JOBS}
    for folder in folders.values():
        write_slices(folder / "landing", WARM_UP + MEASURED)
    orders = {name: Order("headgate_job", folders[name], JOBS[name]) for name in JOBS}
    laps = {
        name: found[WARM_UP:] for name, found in laps_in_turns(orders, WARM_UP + MEASURED).items()
    }
    with capsys.disabled():
        print(f"\n{WARM_UP} slices of {SLICE:,} events to warm up, {MEASURED} measured, in turns")
        for name, found in laps.items():
            print(_told(name, found, laps["no rules"]))
    assert statistics.median(_ratios(laps["10 rules"], laps["no rules"])) <= MOST


def _told(name: str, laps: list[Lap], plain: list[Lap]) -> str:
    cpu, wall = ([lap[key] for lap in laps] for key in ("cpu", "wall"))
    ratios = _ratios(laps, plain)
    return (
        f"{name:10} {statistics.median(cpu):5.2f} CPU s a batch (from {min(cpu):.2f} to "
        f"{max(cpu):.2f}), {statistics.median(wall):.2f} s; x {statistics.median(ratios):.3f} "
        f"(from {min(ratios):.2f} to {max(ratios):.2f})"
    )


def _ratios(laps: list[Lap], plain: list[Lap]) -> list[float]:
    """The CPU seconds of each batch, as multiples of those without rules."""
    return [lap["cpu"] / other["cpu"] for lap, other in zip(laps, plain, strict=True)]
