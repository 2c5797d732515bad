"""``make bench``: the CPU that metrics of a busy stream cost, scraped each second: less than 1 % of
the stream's.

The driver serves them itself, and ``headgate metrics`` reads the same tables beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from headgate.machine.process_tree.ports import free_port
from tests.benchmarks.headgate_job import DECLARATION
from tests.benchmarks.test_latency import GOLD, RATE, Fed, into, running, tree
from tests.support.waiting import wait_until

pytestmark = pytest.mark.bench

WARM_UP, MEASURED = 30, int(os.environ.get("HEADGATE_BENCH_SECONDS", "90"))
SHARE = 0.01
_READING = re.compile(r"^headgate_reading_seconds_total\{.*?\} (\S+)$", re.MULTILINE)
_COMMAND = str(Path(sys.executable).with_name("headgate"))


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def read_for(text: str) -> float:
    """The total seconds spent on reading, over all parts."""
    return sum(map(float, _READING.findall(text)))


def cpu(process: subprocess.Popen[str]) -> float:
    """CPU seconds of a process and all that it has started."""
    total = 0.0
    for each in tree(process):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def is_served(port: int) -> Callable[[], bool]:
    def is_there() -> bool:
        with suppress(OSError):
            return 'headgate_running{pipeline="bench"} 1.0' in scrape(port)
        return False

    return is_there


def test_metrics_cost_less_than_one_percent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "landing").mkdir()
    own, beside = free_port(), free_port()
    declaration, root = tmp_path / "bench.yml", str(tmp_path / "lake")
    declaration.write_text(f"{DECLARATION}metrics: {{port: {own}}}\n")
    run = [_COMMAND, "run", str(declaration), "--root", root]
    serve = [_COMMAND, "metrics", str(declaration), "--root", root, "--port", str(beside)]
    with running(tmp_path, *run) as driver, running(tmp_path, *serve) as watcher:
        job = Fed(driver, tmp_path / GOLD, into(tmp_path), every=1, freezes=False)
        for port in (own, beside):
            wait_until(is_served(port), "metrics are not served", 180)
        job.feed(WARM_UP)
        job.wait()
        reading, spent, watching = read_for(scrape(own)), cpu(driver), cpu(watcher)
        for _ in range(MEASURED):
            job.feed(1)
            scrape(own), scrape(beside)
        job.wait()
        took = read_for(scrape(own)) - reading
        spent, watching = cpu(driver) - spent, cpu(watcher) - watching
    with capsys.disabled():
        print(
            f"\nmetrics of {RATE:,} events/s for {MEASURED} s, a scrape each second: the driver "
            f"takes {spent:.0f} s of CPU, {took / spent:.2%} of it reads metrics; "
            f"`headgate metrics` beside it takes {watching / spent:.2%} of that"
        )
    assert took < SHARE * spent
    assert watching < SHARE * spent
