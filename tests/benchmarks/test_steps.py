"""``make bench``: small batches, one a second, over a gold table of many open rows, which takes a
step with every batch or every 10 seconds. The two pipelines take turns, one batch each.

CPU seconds of the whole process tree are compared, because wall time on a shared machine is mostly
noise. The steps are due by the number of batches, not by the time that these took.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from tests.benchmarks.measuring import tree_cpu
from tests.support.engine import Engine
from tests.support.landing import Landing, lines
from tests.support.tables import read

OPEN_ROWS, EVENTS = 100_000, 200
EVERY = 10
WARM_UP, MEASURED = 10, int(os.environ.get("HEADGATE_BENCH_STEP_BATCHES", "40"))
LEAST = 2
"""How many times more CPU a step with every batch costs at least."""

DECLARATION = """
pipeline: bench
sources:
  payments:
    files: {{path: "{landing}", format: json, order: name, settle: "0 s"}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, account: bigint, amount: "decimal(18,2)", at: timestamp}}
silver:
  clean: {{from: payments, where: amount > 0}}
gold:
  per_account:
    from: clean
    window: {{tumbling: 1 day}}
    by: [account]
    measures: {{payments: count(*), volume: sum(amount), top: max(amount)}}
    allowed_lateness: 1 hour
"""


@dataclass
class Pipeline:
    """A pipeline whose driver has one batch a second. ``costs`` are CPU seconds, ``lacking`` how
    many batches gold lacked after each batch."""

    spark: SparkSession
    folder: Path
    step: str = ""
    seconds: float = 0.0
    costs: list[float] = field(default_factory=list)
    lacking: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.landing = Landing(self.folder / "landing")
        file = self.folder / "bench.yml"
        file.write_text(DECLARATION.format(landing=self.landing.folder) + self.step)
        self.engine = Engine(self.spark, load(file), self.folder / "root")
        for schedule in self.engine.runtime.stages._schedules.values():
            schedule._clock = lambda: self.seconds
            schedule._due = 0

    def batch(self, number: int, events: list[bytes]) -> None:
        self.landing.write(f"{number:05d}.json", lines(events))
        self.seconds, before, engine = number, tree_cpu(), self.engine
        engine.list_new()
        engine.ingest()
        engine.runtime.catch_up(engine.clock(), one_step=True)
        self.costs.append(tree_cpu() - before)
        n = engine.runtime.table("gold/per_account").reader().refresh().n
        self.lacking.append(number + 1 - n)

    def rows(self) -> list[tuple[object, ...]]:
        self.engine.catch_up()
        found = read(self.folder / "root", "gold/per_account", "bench")
        return sorted((row["account"], row["payments"], row["volume"]) for row in found)


def events_of(batch: int, count: int) -> list[bytes]:
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0) - timedelta(days=1)
    return [
        json.dumps(
            {
                "id": f"{batch}-{number}",
                "account": (number * 7919 + batch * 31) % OPEN_ROWS,
                "amount": f"{number % 900 + 1}.50",
                "at": (start + timedelta(seconds=batch)).isoformat(),
            }
        ).encode()
        for number in range(count)
    ]


@pytest.mark.bench
def test_cost_of_a_step_with_every_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every, stepped = (
        Pipeline(spark, tmp_path / "every"),
        Pipeline(spark, tmp_path / "stepped", f"    step: {EVERY} seconds\n"),
    )
    for number in range(1 + WARM_UP + MEASURED):
        made = events_of(number, EVENTS if number else OPEN_ROWS)
        for pipeline in (every, stepped):
            pipeline.batch(number, made)
    cpu = [statistics.fmean(p.costs[1 + WARM_UP :]) for p in (every, stepped)]
    with capsys.disabled():
        print(
            f"\n{OPEN_ROWS:,} open rows, {EVENTS} events a batch: {cpu[0]:.2f} CPU s a batch, with "
            f"a step of {EVERY} s {cpu[1]:.2f}, {cpu[0] / cpu[1]:.1f} times less; results lack up "
            f"to {max(every.lacking)} and {max(stepped.lacking)} batches"
        )
    assert (max(every.lacking), max(stepped.lacking)) == (0, EVERY - 1)
    assert every.rows() == stepped.rows()
    assert cpu[0] > LEAST * cpu[1]
