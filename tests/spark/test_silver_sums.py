"""A version of gold whose sums differ from those of silver is not visible."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.flow.gates import documents
from headgate.lake.tables.payloads.gold import GoldPayload
from tests.support.engine import Engine
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject

pytestmark = pytest.mark.spark

TABLES = """
silver:
  clean: {from: raw}
gold:
  sliding:
    from: clean
    window: {hopping: {size: 3 minutes, every: 1 minute}}
    where: site <> 'South'
    by: [site]
    measures:
      threshold: count(*)
      total: sum(level)
      means: sum(level / 3)
      high: sum(level) filter (where level > 10)
      highs: count_if(level > 10)
    columns: {twice: total * 2}
    allowed_lateness: 1 minute
    expectations: sums
"""
RULES = """
expectations:
  - {id: side, expect: expect_column_sum_to_equal_silver, column: threshold, silver: 1}
  - {id: some, expect: expect_column_sum_to_equal_silver, column: total, silver: level}
  - {id: twice, expect: expect_column_sum_to_equal_silver, column: twice, silver: level + level}
  - id: high
    expect: expect_column_sum_to_equal_silver
    column: high
    silver: if(level > 10, level, null)
  - id: highs
    expect: expect_column_sum_to_equal_silver
    column: highs
    silver: if(level > 10, 1, 0)
  - id: near
    expect: expect_column_sum_to_equal_silver
    column: means
    silver: level / 3
    tolerance: 0.000001
"""
MINUTES = ([0, 1, 2, 2], [9, 1, 8], [20, 9, 19, 18])
"""When the events of each batch happened. Some are late for all of their windows, some for a few
of them."""


def deliver(project: SuiteProject, batch: int) -> None:
    events = [
        {
            "id": f"e{batch}-{number}",
            "site": ["North", "South"][number % 4 == 3],
            "level": None if number == 2 else 10 * batch + number,
            "at": (NOON + timedelta(minutes=minutes)).isoformat(),
        }
        for number, minutes in enumerate(MINUTES[batch])
    ]
    project.land(events)


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> SuiteProject:
    project = SuiteProject(tmp_path, spark, TABLES, "sums")
    project.write_rules(RULES)
    return project


def broken(engine: Engine) -> list[str]:
    gate = GoldPayload.of(engine.runtime.table("gold/sliding").refresh()).gate
    assert gate is not None
    return list(gate["broken"])


def test_what_is_folded_is_silver_less_what_is_late(
    project: SuiteProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.flow.gates.gate.PAUSE", 1e6)  # only the release ends the pause
    deliver(project, 0)
    engine = project.engine().run_all()
    assert (documents.hold_reason(engine.layout, "sliding"), broken(engine)) == (None, [])
    # A rule that no version meets: silver and the late table go on, and gold stays behind.
    wrong = RULES.replace("silver: level}", "silver: level + 1}")
    project.write_rules(wrong)
    engine = project.engine()
    for batch in (1, 2):
        deliver(project, batch)
        engine.run_all()
    held = documents.hold_reason(engine.layout, "sliding")
    assert held is not None
    assert (held.n, held.upto, [r.rule for r in held.failed]) == (1, 2, ["some"])
    late = project.read("late/sliding")
    assert {row["_event_id"] for row in late} == {"e1-1"}
    # The version of batch 2 is compared with silver and late rows as they were then.
    given = documents.Release(2, "anna@host", "why not", engine.clock())
    documents.release(engine.layout, "sliding", given)
    engine.catch_up()
    assert engine.runtime.table("gold/sliding").refresh().n == 2
    assert broken(engine) == ["some"]
    project.write_rules(RULES)
    engine = project.engine()
    engine.catch_up()
    assert (engine.runtime.table("gold/sliding").refresh().n, broken(engine)) == (3, [])
    assert len(project.read("late/sliding")) > len(late)
    engine = project.engine(RebuildRequest(("gold/sliding",)))
    engine.catch_up()
    assert engine.runtime.rebuild is None
    engine.drain()
    assert broken(engine) == []
