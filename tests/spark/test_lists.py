"""Measures that are arrays, in a gold table: open and final rows, rules, replays of late rows,
backfills, publications, queries and the dashboard."""

from __future__ import annotations

import csv
import json
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.flow.gates import documents
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.rows import RowsQuestion, rows, write_file
from headgate.insight.dashboard.questions.selection import Selection
from headgate.insight.dashboard.questions.view import GoldView
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.querying.sql import select
from tests.support.backfilled import backfill, unequal
from tests.support.engine import Engine
from tests.support.postgres import PASSWORD, is_there, running_server
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject
from tests.support.tables import Row
from tests.support.toys import toys

pytestmark = pytest.mark.spark

TABLES = """
silver:
  clean: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: [site]
    measures:
      best: "top_n(named_struct('id', id, 'level', level), level, 2)"
      words: collect_list(split(id, ' '), 2)
      high: top_n(level, level, 3) filter (where level > 5)
    columns: {leader: "best[0].id", listed: size(words)}
    allowed_lateness: 0 s
    expectations: lists
"""
RULES = """
expectations:
  - {id: few, expect: size(best) <= 2 and listed <= 2}
  - {id: there, expect: expect_column_values_to_not_be_null, column: words}
"""
EVERYTHING: Row = {"table": "per_minute", "from": None, "to": None, "keys": {}}
LISTS = ("best", "words", "high", "leader", "listed", "final", "revision")


@dataclass(frozen=True)
class Event:
    id: str
    level: int | None
    seconds: float

    def record(self) -> Row:
        at = NOON + timedelta(seconds=self.seconds)
        return {"id": self.id, "site": "x", "level": self.level, "at": at.isoformat()}


FIRST = Event("a 1", 3, 0), Event("b 1", 9, 1), Event("c 1", None, 2), Event("d 1", 9, 0.5)
NEXT = (Event("e 1", 4, 0.2), Event("f 1", 2, 300))
LATE = (Event("g 1", 10, 0),)


def lists(*events: Event) -> Row:
    """The lists of a window and key; ``events`` are in the order of the source."""
    early = sorted(enumerate(events), key=lambda each: (each[1].seconds, each[0]))
    known = [(event.level, place, event) for place, (_, event) in enumerate(early)
             if event.level is not None]  # fmt: skip
    falling = [event for *_, event in sorted(known, key=lambda each: each[:2], reverse=True)]
    return {
        "best": [{"id": event.id, "level": event.level} for event in falling[:2]],
        "words": [event.id.split(" ") for _, event in early[:2]],
        "high": [event.level for event in falling if event.level and event.level > 5][:3],
        "leader": falling[0].id,
        "listed": min(len(events), 2),
    }


def row(*events: Event, final: bool, revision: int = 0) -> Row:
    return {**lists(*events), "final": final, "revision": revision}


class Project(SuiteProject):
    def __init__(self, folder: Path, spark: SparkSession, publish: str = "") -> None:
        super().__init__(folder, spark, f"{TABLES}{publish}", "lists")
        self.write_rules(RULES)

    def run(self, engine: Engine, *events: Event) -> None:
        self.land(event.record() for event in events)
        engine.run_all()
        assert documents.hold_reason(engine.layout, "per_minute") is None

    def gold(self) -> list[Row]:
        found = sorted(self.read("gold/per_minute"), key=lambda each: each["window_start"])
        return [{name: each[name] for name in LISTS} for each in found]


def replay(engine: Engine) -> None:
    engine.operate("late_replay", **EVERYTHING)
    engine.catch_up()


FINAL = [row(*FIRST, NEXT[0], final=True), row(NEXT[1], final=False)]
REPLAYED = [row(*FIRST, NEXT[0], *LATE, final=True, revision=1), row(NEXT[1], final=False)]


def test_rows_show_their_lists_from_the_first_batch_to_a_replay(
    tmp_path: Path, spark: SparkSession
) -> None:
    project = Project(tmp_path, spark)
    engine = project.engine()
    project.run(engine, *FIRST[:2])
    assert project.gold() == [row(*FIRST[:2], final=False)]
    project.run(engine, *FIRST[2:])
    assert project.gold() == [row(*FIRST, final=False)]
    project.run(engine, *NEXT)
    assert project.gold() == FINAL
    project.run(engine, *LATE)
    assert project.gold() == FINAL
    replay(engine)
    assert project.gold() == REPLAYED
    assert unequal(backfill(engine)) == []
    _asked(engine)
    _shown(engine, tmp_path)


def _asked(engine: Engine) -> None:
    sql = "SELECT words[2], best[1].level, len(high) FROM per_minute ORDER BY window_start"
    assert select(engine.pipeline, engine.layout, sql)[1] == [(["g", "1"], 10, 3), (None, 2, 0)]


def _shown(engine: Engine, folder: Path) -> None:
    """The dashboard shows lists as JSON, and knows that they are no numbers."""
    view = GoldView.of(Reader(), Shown.of(engine.pipeline, str(engine.root)), "per_minute")
    found = rows(view, RowsQuestion(Selection(), sort="window_start"))
    for wanted, cells in zip(REPLAYED, found["cells"], strict=True):
        shown = dict(zip(found["columns"], cells, strict=True))
        assert {name: json.loads(shown[name]) for name in ("best", "words", "high")} == {
            name: wanted[name] for name in ("best", "words", "high")
        }
    numbers = dict(zip(found["columns"], found["numbers"], strict=True))
    assert [name for name, is_number in numbers.items() if is_number] == ["listed", "revision"]
    assert [figure.name for figure in view.facts.figures] == ["listed"]
    file = folder / "rows.csv"
    with file.open("wb") as opened:
        write_file(view, Selection(), "csv", opened)
    written = [json.loads(line["best"]) for line in csv.DictReader(file.read_text().splitlines())]
    assert written == [each["best"] for each in reversed(REPLAYED)]


def test_a_backfill_finds_a_list_that_differs(tmp_path: Path, spark: SparkSession) -> None:
    project = Project(tmp_path, spark)
    engine = project.engine()
    project.run(engine, *FIRST)
    project.run(engine, *NEXT)
    text = project.declaration.read_text()
    project.declaration.write_text(text.replace("collect_list(split(id, ' '), 2)", FROM_THE_SECOND))
    (table,) = unequal(backfill(engine, used=load(project.declaration)))
    assert (table.changed, table.new, table.gone) == (1, 0, 0)
    assert [each.column for each in table.columns] == ["words"]
    (changed,) = table.rows.rows
    assert changed.before is not None
    assert changed.after is not None
    assert (changed.before["words"], changed.after["words"]) == (
        "[[a, 1], [e, 1]]",
        "[[e, 1], [d, 1]]",
    )


FROM_THE_SECOND = "collect_list(split(id, ' '), 2) filter (where id <> 'a 1')"


def test_publications_send_lists(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message has lists as JSON, and a table of PostgreSQL has columns of the type json."""
    file = tmp_path / "sent.jsonl"
    with ExitStack() as stack:
        stack.enter_context(toys())
        said = [f"  lines: {{from: gold.per_minute, when: final, jsonl: {{path: {file}}}}}"]
        server = stack.enter_context(running_server()) if is_there else None
        if server is not None:
            monkeypatch.setenv("PG_PASSWORD", PASSWORD)
            url = server.url.replace(PASSWORD, "${env:PG_PASSWORD}")
            sink = f"postgres: {{url: '{url}', table: mirror}}"
            said.append(f"  rows: {{from: gold.per_minute, when: update, {sink}}}")
        project = Project(tmp_path, spark, "\n".join(["publish:", *said, ""]))
        engine = project.engine()
        for events in (FIRST, NEXT, LATE):
            project.run(engine, *events)
            engine.publish()
        replay(engine)
        engine.publish()
        messages = [json.loads(line)["value"] for line in file.read_text().splitlines()]
        # JSON leaves out nulls. An empty list is one.
        assert [{name: each[name] for name in LISTS[:-2]} for each in messages] == [
            lists(*FIRST, NEXT[0]),
            lists(*FIRST, NEXT[0], *LATE),
        ]
        if server is not None:
            columns = ", ".join(LISTS)
            found = server.ask(f"SELECT {columns} FROM mirror ORDER BY window_start")
            assert [dict(zip(LISTS, each, strict=True)) for each in found] == REPLAYED
