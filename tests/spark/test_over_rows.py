"""Measures over the last rows before each row, as DuckDB says, in any batches, and with
corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from tests.support.engine import Engine
from tests.support.joined_project import (
    NOON,
    Event,
    JoinedProject,
    events,
    late,
    output,
    prove,
)
from tests.support.measured_over import MEASURED, MEASURES, require_same
from tests.support.tables import read

pytestmark = pytest.mark.spark

WITHIN, BEAT = 15, timedelta(seconds=3)
ROWS = """
  {name}:
    over:
      table: purchases
      rows: {rows}
      within: {within} s
{measured}    allowed_lateness: 20 s
"""
# The rows of the window of SQL, and of these the ones that are near. A row without a user has the
# rows without one.
DUCKDB = """
WITH numbered AS (
    SELECT *, row_number() OVER w AS row,
           list(id) OVER (w ROWS BETWEEN {rows} PRECEDING AND CURRENT ROW) AS last
    FROM sent WINDOW w AS (PARTITION BY "user" ORDER BY "at", place)
)
SELECT one.id, count(*), sum(each.amount), avg(each.amount), stddev(each.amount),
       min(each.amount), count(*) FILTER (each.amount >= 50), count(DISTINCT each.amount),
       sum(each.amount) FILTER (each.amount < 50)
FROM numbered AS one JOIN numbered AS each
  ON list_contains(one.last, each.id) AND each."at" >= one."at" - INTERVAL {within} SECONDS
GROUP BY one.id
"""
# One row; a few, of which some are too old; and more than there are.
TABLES = {"spent_on_one": 1, "spent_on_few": 3, "spent_on_many": 200}


def project_of(folder: Path, spark: SparkSession) -> JoinedProject:
    more = {"within": WITHIN, "measured": MEASURED}
    gold = (ROWS.format(name=name, rows=rows, **more) for name, rows in TABLES.items())
    return JoinedProject(folder, spark, (), "".join(gold))


def purchases(count: int, seed: int) -> list[Event]:
    """Events of which many have the time of another one of their user."""
    return [
        replace(event, kind="purchase", at=event.at - (event.at - NOON) % BEAT)
        for event in events(count, seed)
    ]


def expected(included: Sequence[Event], rows: int) -> Mapping[str, tuple[Any, ...]]:
    names = ("id", "user", "at", "amount")
    columns = {name: [getattr(event, name) for event in included] for name in names}
    # Ids rise with the offsets.
    columns["place"] = columns["id"]
    with duckdb.connect() as connection:
        connection.register("sent", pa.table(columns))
        found = connection.execute(DUCKDB.format(rows=rows, within=WITHIN)).fetchall()
    return {row[0]: row[1:] for row in found}


def compare(project: JoinedProject, included: Sequence[Event], upto: int | None) -> None:
    times = {event.id: event.time for event in included}
    for name, rows in TABLES.items():
        meant = {
            id_: row
            for id_, row in expected(included, rows).items()
            if upto is None or times[id_] < upto
        }
        found = {
            row["purchase"]: tuple(row[measure] for measure in MEASURES)
            for row in read(project.root, f"gold/{name}", "shop")
        }
        require_same(found, meant)


def replay_all(engine: Engine) -> None:
    for name in TABLES:
        engine.operate("late_replay", table=name, **{"from": None, "to": None, "keys": {}})
    engine.catch_up()


def test_both_limits_matter() -> None:
    """For some rows the number, for others the time decides which rows count; and many rows have
    the time of another one of their user."""
    sent = purchases(150, seed=31)
    few, many = expected(sent, 3), expected(sent, 200)
    assert {row[0] for row in few.values()} == {1, 2, 3, 4}
    assert any(few[id_][0] < many[id_][0] for id_ in few)
    last = [event.id for event in sent[-30:]]
    assert any(few[id_][0] < 4 for id_ in last)
    assert len({(event.user, event.at) for event in sent}) < len(sent) - 20


@pytest.mark.parametrize("sizes", [(150,), (20, 5, 60, 65)])
def test_measures_over_rows_are_those_of_duckdb(
    tmp_path: Path, spark: SparkSession, sizes: Sequence[int]
) -> None:
    project = project_of(tmp_path, spark)
    sent = iter(purchases(150, seed=31))
    engine = project.engine()
    for number, size in enumerate(sizes):
        project.land([next(sent) for _ in range(size)])
        if number % 2:
            engine = project.engine()
        engine.run_all()
    assert late(project.sent)
    compare(project, project.on_time(), output(project.sent))
    prove(engine)
    replay_all(engine)
    compare(project, project.sent, output(project.sent))
    prove(engine)
    engine.drain()
    compare(project, project.sent, None)
    prove(engine)


def test_a_replay_changes_some_rows_and_a_rebuild_none(tmp_path: Path, spark: SparkSession) -> None:
    """Rows that come later have the replayed ones before them, too."""
    project = project_of(tmp_path, spark)
    sent = purchases(200, seed=11)
    engine = project.engine()
    project.land(sent[:120])
    engine.run_all()
    before = {r["row_id"]: r for r in read(engine.root, "gold/spent_on_few", "shop")}
    replayed = late(project.sent)
    replay_all(engine)
    compare(project, project.sent, output(project.sent))
    after = {r["row_id"]: r for r in read(engine.root, "gold/spent_on_few", "shop")}
    values = {
        id_: (tuple(r[m] for m in MEASURES), tuple(after[id_][m] for m in MEASURES))
        for id_, r in before.items()
    }
    changed = {id_ for id_, (old, new) in values.items() if old != new}
    assert changed
    assert {id_ for id_ in before if after[id_]["revision"]} == changed
    project.land(sent[120:])
    engine.run_all()
    included = [e for e in project.sent if e in replayed or e not in late(sent)]
    compare(project, included, output(project.sent))
    prove(engine)
    rebuilt = project.engine(RebuildRequest(("gold/spent_on_few", "silver/purchases")))
    for _ in range(3):
        rebuilt.catch_up()
    compare(project, included, output(project.sent))
    prove(rebuilt)
