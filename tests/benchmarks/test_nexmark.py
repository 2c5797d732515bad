"""``make nexmark``: the queries of Nexmark, each in a pipeline of its own. Each table is compared
with DuckDB over all events, and the CPU time that an event takes is printed.

An event of any kind counts: 46 of 50 are bids. The part of bronze is the same for all queries, and
is printed beside that of silver and gold. Gold takes a step with every batch, also where the
declaration says ``auto``. Beside it, the query as a plain job of Spark, if there is one; the jobs
run one after the other, so compare them on a quiet machine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.setup.demo.feeding import write_slice
from tests.benchmarks.plain_nexmark import QUERIES
from tests.benchmarks.turns import user_environment
from tests.nexmark.answers import ANSWERS, Input
from tests.nexmark.declared import LANDING
from tests.nexmark.generator import Stream

WARM_UP = int(os.environ.get("HEADGATE_BENCH_WARM_UP", "6"))
MEASURED = int(os.environ.get("HEADGATE_BENCH_STEPS", "6"))
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
    place(landing, tmp_path / LANDING)
    batches = batches_of("nexmark_job", tmp_path, query)
    found = sent.difference(query, tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake")
    assert found.shown
    assert (found.more, found.fewer) == ([], [])
    bronze, tables = (micros(batches, part) for part in ("bronze", "tables"))
    plain = "no plain job"
    if query in QUERIES:
        place(landing, tmp_path / "plain/landing")
        cost = micros(batches_of("plain_nexmark", tmp_path / "plain", query), "cpu")
        plain = f"plain Spark {cost:.1f}, x {cost / (bronze + tables):.2f}"
    with capsys.disabled():
        print(
            f"\n{query:4} {bronze + tables:5.1f} µs of CPU for each event: bronze {bronze:.1f}, "
            f"silver and gold {tables:.1f}; {plain}; {found.shown:,} rows"
        )


def place(landing: Path, link: Path) -> None:
    link.parent.mkdir()
    link.symlink_to(landing)


def batches_of(job: str, folder: Path, query: str) -> list[dict[str, float]]:
    """What a job prints of each batch."""
    words = [sys.executable, "-m", f"tests.benchmarks.{job}", str(folder), query]
    run = subprocess.run(words, env=user_environment(), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    batches = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(batches) == WARM_UP + MEASURED
    return batches


def micros(batches: Sequence[Mapping[str, float]], part: str) -> float:
    """The median CPU time of the measured batches, in microseconds for each event."""
    return 1e6 * statistics.median(batch[part] for batch in batches[WARM_UP:]) / EVENTS
