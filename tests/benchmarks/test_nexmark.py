"""``make nexmark``: the queries of Nexmark, each in a pipeline of its own. Each table is compared
with DuckDB over all events, and the CPU time that an event takes is printed.

An event of any kind counts: 46 of 50 are bids. The part of bronze is the same for all queries, and
is printed beside that of silver and gold. Gold takes a step with every batch, also where the
declaration says ``auto``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.setup.demo.feeding import write_slice
from tests.benchmarks.turns import user_environment
from tests.nexmark.answers import ANSWERS, Input
from tests.nexmark.declared import LANDING
from tests.nexmark.generator import Stream

WARM_UP = int(os.environ.get("HEADGATE_BENCH_WARM_UP", "8"))
MEASURED = int(os.environ.get("HEADGATE_BENCH_STEPS", "8"))
EVENTS = 50_000
STREAM = Stream(seed=1, start=datetime(2026, 3, 1, tzinfo=UTC), rate=10_000.0, disorder=100)

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    for number, part in enumerate(STREAM.slices(EVENTS * (WARM_UP + MEASURED), EVENTS)):
        write_slice(folder, number, part.lines, part.now)
    return folder


@pytest.fixture(scope="module")
def sent(landing: Path) -> Iterator[Input]:
    with closing(Input(sorted(landing.iterdir()))) as input_:
        yield input_


@pytest.mark.parametrize("query", ANSWERS)
def test_a_query(
    query: str,
    landing: Path,
    sent: Input,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / LANDING).parent.mkdir()
    (tmp_path / LANDING).symlink_to(landing)
    job = [sys.executable, "-m", "tests.benchmarks.nexmark_job", str(tmp_path), query]
    run = subprocess.run(job, env=user_environment(), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    batches = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(batches) == WARM_UP + MEASURED
    found = sent.difference(query, tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake")
    assert found.shown
    assert (found.more, found.fewer) == ([], [])
    micros = {
        part: 1e6 * statistics.median(batch[part] for batch in batches[WARM_UP:]) / EVENTS
        for part in ("bronze", "tables")
    }
    with capsys.disabled():
        print(
            f"\n{query:4} {sum(micros.values()):5.1f} µs of CPU for each event: "
            f"bronze {micros['bronze']:.1f}, silver and gold {micros['tables']:.1f}; "
            f"{found.shown:,} rows"
        )
