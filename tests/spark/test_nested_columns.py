"""Columns of silver that are arrays: through rules, late rows, copies of rejected rows, and SQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.insight.querying.sql import select
from tests.support.engine import Engine
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject
from tests.support.tables import Row

pytestmark = pytest.mark.spark

TABLES = """
silver:
  clean:
    from: raw
    columns:
      words: split(site, ' ')
      letters: transform(split(site, ' '), w -> split(w, ''))
    where: not exists(split(site, ' '), w -> w = 'skip')
    expectations: clean
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: {first: "words[0]"}
    measures: {events: count(words), longest: "max(size(letters))"}
    allowed_lateness: 0 s
"""
RULES = """
expectations:
  - {id: some, expect: expect_column_values_to_not_be_null, column: words, action: warn}
  - {id: short, expect: "size(words) < 4"}
"""


def event(name: str, site: str | None, seconds: int, level: int = 1) -> Row:
    at = NOON + timedelta(seconds=seconds)
    return {"id": name, "site": site, "level": level, "at": at.isoformat()}


def asked(engine: Engine, sql: str) -> list[tuple[object, ...]]:
    return select(engine.pipeline, engine.layout, sql)[1]


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> SuiteProject:
    project = SuiteProject(tmp_path, spark, TABLES, "clean")
    project.write_rules(RULES)
    return project


def run(engine: Engine, project: SuiteProject, *batches: Iterable[Row]) -> None:
    for events in batches:
        project.land(events)
        engine.run_all()


def test_arrays_go_through_all_tables(project: SuiteProject) -> None:
    engine = project.engine()
    run(
        engine,
        project,
        [event("a", "ab c", 0), event("none", None, 1), event("long", "a b c d", 2)],
        # A later copy of a rejected row meets the rules, one row is late, one is filtered.
        [
            event("m", "x", 180),
            event("long", "a b", 2),
            event("late", "l", 3),
            event("s", "skip", 190),
        ],
    )
    rows = {row["_event_id"]: row for row in project.read("silver/clean")}
    assert {name: row["words"] for name, row in rows.items()} == {
        "a": ["ab", "c"],
        "m": ["x"],
        "long": ["a", "b"],
        "late": ["l"],
    }
    assert rows["a"]["letters"] == [["a", "b"], ["c"]]
    assert [row["event_id"] for row in project.read("rejected/clean")] == ["long"]
    late = sorted(row["words"] for row in project.read("late/per_minute"))
    assert late == [["a", "b"], ["l"]]
    assert asked(engine, "SELECT first, events, longest FROM per_minute ORDER BY ALL") == [
        ("ab", 1, 2),
        ("x", 1, 1),
    ]
    assert asked(engine, "SELECT words[1], letters FROM clean WHERE _event_id = 'a'") == [
        ("ab", [["a", "b"], ["c"]])
    ]
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_a_rule_that_needs_one_value_refuses_an_array(project: SuiteProject) -> None:
    project.write_rules(
        "expectations:\n"
        "  - {id: one, expect: expect_column_values_to_be_in_set, column: words, value_set: [a]}\n"
    )
    with pytest.raises(
        Exception, match="is for columns of one value each, and 'words' is array<str"
    ):
        project.engine()
