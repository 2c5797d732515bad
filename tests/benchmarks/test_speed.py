"""``make bench``: Headgate beside a plain three-query PySpark + Delta job, warm, in one run.

Wall time on a shared machine is noise first; CPU seconds of the whole process tree, and ratios of
jobs that ran one after the other here and now, are what the numbers are for.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.feed import SLICE, write_slices

WARM_UP = int(os.environ.get("HEADGATE_BENCH_WARM_UP", "30"))
MEASURED = int(os.environ.get("HEADGATE_BENCH_SLICES", "20"))


def _laps(module: str, folder: Path) -> list[dict[str, float]]:
    # Tests have a JVM of their own kind (tests/conftest.py); this is one as users have it.
    environment = {k: v for k, v in os.environ.items() if k != "JDK_JAVA_OPTIONS"}
    done = subprocess.run(
        [sys.executable, "-m", f"tests.benchmarks.{module}", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _report(say: Callable[[str], None], name: str, laps: list[dict[str, float]]) -> float:
    measured = laps[WARM_UP:]
    rates = sorted(SLICE / lap["cpu"] / 1000 for lap in measured)
    walls = sorted(lap["wall"] for lap in measured)
    say(
        f"{name:10} {statistics.median(rates):6.1f} k events per CPU-second "
        f"(from {rates[0]:.1f} to {rates[-1]:.1f}), batch of {SLICE:,} in "
        f"{statistics.median(walls):.2f} s (from {walls[0]:.2f} to {walls[-1]:.2f})"
    )
    return statistics.median(rates)


@pytest.mark.bench
def test_speed_beside_the_plain_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def say(text: str) -> None:
        with capsys.disabled():
            print(text)

    say(f"\n{WARM_UP} slices of {SLICE:,} events to warm up, {MEASURED} measured, 2 cores")
    laps = {}
    for name, module in (("plain", "plain_job"), ("headgate", "headgate_job")):
        folder = tmp_path / name
        write_slices(folder / "landing", WARM_UP + MEASURED)
        laps[name] = _laps(module, folder)
        assert len(laps[name]) == WARM_UP + MEASURED
    plain = _report(say, "plain", laps["plain"])
    headgate = _report(say, "headgate", laps["headgate"])
    say(f"{'ratio':10} {headgate / plain:6.2f}")
    last = laps["headgate"][WARM_UP:]
    assert last[-1]["compilations"] == last[0]["compilations"], "a batch still compiles code"
    assert all(lap["persisted"] == 0 for lap in last), "a frame stays in memory"
    assert headgate > plain
