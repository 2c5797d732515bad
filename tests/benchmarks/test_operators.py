"""``make bench``: the step of each gold operator beside that of tumbling windows, over the same
batches in one process, and a step over a million open rows.

CPU seconds of the whole process tree are compared, because wall time on a shared machine is mostly
noise. The tables take turns, one batch each. ``test_speed`` compares tumbling windows with plain
Spark.
"""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.lake.tables.payloads.gold import GoldPayload
from tests.benchmarks.measuring import tree_cpu
from tests.support.engine import Engine
from tests.support.landing import Landing, lines

WARM_UP, MEASURED = 8, int(os.environ.get("HEADGATE_BENCH_STEPS", "12"))
EVENTS, KEYS = 20_000, 1_000
MILLION = 1_000_000
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)

SOURCE = """
pipeline: bench
sources:
  clicks:
    files: {{path: "{landing}", format: json, order: name, settle: "0 s"}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, user: bigint, price: bigint, at: timestamp}}
silver:
  clean: {{from: clicks}}
gold:
"""
TABLE = """
  {name}:
    from: {above}
    {how}
    by: [user]
    measures: {{{measures}}}
"""
LATENESS = "    allowed_lateness: 10 seconds\n"
MEASURES = "rows: count(*), total: sum(price), top: max(price)"
AGAIN = "rows: sum(rows), total: sum(total), top: max(top)"
OPERATORS = {
    "tumbling": "window: {tumbling: 1 minute}",
    "hopping": "window: {hopping: {size: 1 minute, every: 30 seconds}}",
    "calendar": "window: {calendar: {unit: day, zone: Europe/Berlin}}",
    "session": "window: {session: 20 seconds}",
    "running": "running: true",
    "count": "window: {count: 100}",
}
WITHOUT_LATENESS = ("running", "count")


def engine_of(spark: SparkSession, folder: Path, tables: str) -> tuple[Engine, Landing]:
    landing = Landing(folder / "landing")
    file = folder / "bench.yml"
    file.write_text(SOURCE.format(landing=landing.folder) + tables)
    return Engine(spark, load(file), folder / "root"), landing


def events_of(batch: int, count: int, keys: int, seconds: float) -> Iterator[bytes]:
    """The events of a batch, ``seconds`` of event time long."""
    for number in range(count):
        at = BEGIN + timedelta(seconds=seconds * (batch + number / count))
        event = {"id": f"{batch}-{number}", "user": (number * 7919 + batch * 31) % keys}
        yield json.dumps({**event, "price": number % 900, "at": at.isoformat()}).encode()


def costs(engine: Engine) -> dict[str, float]:
    """The CPU seconds of the step of each gold table up to silver's batch."""
    found, stages = {}, engine.runtime.stages
    generation = engine.runtime.control.refresh().generation
    stages.catch_up(("silver",), engine.clock(), None, (), generation)
    for name, gold in stages.gold.items():
        upto, before = gold.upstream[0].refresh().n, tree_cpu()
        gold.catch_up(upto, engine.clock(), None, {})
        found[name] = tree_cpu() - before
    return found


@pytest.mark.bench
def test_cost_of_each_operator(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = "".join(
        TABLE.format(name=name, above="clean", how=how, measures=MEASURES)
        + ("" if name in WITHOUT_LATENESS else LATENESS)
        for name, how in OPERATORS.items()
    )
    how = "window: {tumbling: 10 minutes}"
    tables += TABLE.format(name="rollup", above="tumbling", how=how, measures=AGAIN) + LATENESS
    engine, landing = engine_of(spark, tmp_path, tables)
    taken = defaultdict(list)
    for batch in range(WARM_UP + MEASURED):
        landing.write(f"{batch:05d}.json", lines([*events_of(batch, EVENTS, KEYS, 30)]))
        engine.list_new()
        engine.ingest()
        for name, cpu in costs(engine).items():
            taken[name].append(cpu)
    means = {name: statistics.median(found[WARM_UP:]) for name, found in taken.items()}
    with capsys.disabled():
        print(f"\n{EVENTS:,} events of {KEYS:,} keys a batch, CPU s of gold's step:")
        for name, cpu in means.items():
            print(f"  {name:9} {cpu:.2f}, x {cpu / means['tumbling']:.2f} of tumbling")


@pytest.mark.bench
def test_cost_of_a_million_open_rows(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step writes all open rows again: its cost follows their number."""
    how = "window: {tumbling: 366 days}"
    table = TABLE.format(name="users", above="clean", how=how, measures=MEASURES) + LATENESS
    found = {}
    for rows in (1_000, MILLION):
        (folder := tmp_path / str(rows)).mkdir()
        engine, landing = engine_of(spark, folder, table)
        taken = []
        for batch in range(1 + WARM_UP + MEASURED):
            count = EVENTS if batch else rows
            landing.write(f"{batch:05d}.json", lines([*events_of(batch, count, rows, 1)]))
            engine.list_new()
            engine.ingest()
            taken.append(costs(engine)["users"])
        found[rows] = statistics.median(taken[1 + WARM_UP :])
        state = engine.runtime.table("gold/users").reader().refresh()
        assert GoldPayload.of(state).open == rows
    with capsys.disabled():
        over = (f"{cpu:.2f} over {rows:,} open rows" for rows, cpu in found.items())
        print(f"\nCPU s of a step of {EVENTS:,} events: {', '.join(over)}")
