"""Joins of two silver tables, as plain Python says, in any batches, with restarts and
corrections."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.flow.gates import documents
from tests.property.inputs.definitions import Results
from tests.support.compacted import kept
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.joined_project import (
    JOINS,
    LATENESS,
    MICRO,
    NOON,
    AnyJoin,
    Event,
    Joined,
    JoinedProject,
    events,
    late,
    output,
    prove,
)
from tests.support.landing import Landing, lines
from tests.support.measured_over import MEASURED, MEASURES, require_same
from tests.support.postgres import PASSWORD, is_there, running_server
from tests.support.tables import read
from tests.support.toys import toys

pytestmark = pytest.mark.spark


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> JoinedProject:
    return JoinedProject(tmp_path, spark)


def replay_all(engine: Engine) -> None:
    for join in JOINS:
        engine.operate("late_replay", table=join.name, **{"from": None, "to": None, "keys": {}})
    engine.catch_up()


@pytest.mark.parametrize("sizes", [(160,), (7, 1, 90, 62), (40, 40, 40, 40)])
def test_pairs_are_as_plain_python_says_in_any_batches(
    project: JoinedProject, sizes: Sequence[int]
) -> None:
    sent = iter(events(160, seed=4))
    engine = project.engine()
    for number, size in enumerate(sizes):
        project.land([next(sent) for _ in range(size)])
        if number % 2:
            engine = project.engine()
        engine.run_all()
    left_out = late(project.sent)
    assert left_out
    project.compare(project.on_time(), output(project.sent))
    for join in JOINS:
        assert sorted(project.late_ids(join)) == sorted(event.id for event in left_out)
    prove(engine)


def test_late_rows_that_are_replayed_are_in_the_pairs(project: JoinedProject) -> None:
    """The pairs are those of a stream that had the rows in time. Later pairs have them, too."""
    sent = events(200, seed=11)
    engine = project.engine()
    for part in (sent[:70], sent[70:130]):
        project.land(part)
        engine.run_all()
    replayed = late(project.sent)
    before = {join.name: read(engine.root, f"gold/{join.name}", "shop") for join in JOINS}
    replay_all(engine)
    project.compare(project.sent, output(project.sent))
    for join in JOINS:
        rows = {row["row_id"]: row for row in read(engine.root, f"gold/{join.name}", "shop")}
        kept = [rows[row["row_id"]] for row in before[join.name] if row["row_id"] in rows]
        # A pair never changes. A purchase may get another last click.
        assert {row["revision"] for row in kept} == ({0, 1} if join.name == "seen" else {0})
        assert len(rows) > len(kept)
    prove(engine)
    project.land(sent[130:])
    engine.run_all()
    included = [event for event in project.sent if event in replayed or event not in late(sent)]
    project.compare(included, output(project.sent))
    prove(engine)


def test_a_drain_decides_all_results(project: JoinedProject) -> None:
    """Later rows before the last result are late, with the reason ``closed``."""
    project.land(events(80, seed=5))
    engine = project.engine().run_all()
    engine.drain()
    included = project.on_time()
    project.compare(included, None)
    prove(engine)
    kept = max(time for join in JOINS for time, _ in project.rows(join).values())
    closed = Event("closed", "click", "ann", NOON + kept * MICRO - LATENESS, 1)
    after = [Event(f"after{n}", "purchase", "ann", NOON + (kept + n) * MICRO, 99) for n in (1, 2)]
    project.land([closed, *after])
    engine.run_all()
    assert "closed" in [
        row["_event_id"]
        for row in read(engine.root, "late/all_of_both", "shop")
        if row["reason"] == "closed"
    ]
    engine.drain()
    rows = project.rows(JOINS[2])
    assert rows == project.expected(JOINS[2], [*included, *after])
    prove(engine)


PLACES = [
    *("silver.committed", "late.staged", "late.committed", "late.committed:3"),
    *("gold.staged", "gold.committed", "gold.committed:2"),
]


def test_a_death_at_any_place_of_a_batch_changes_nothing(project: JoinedProject) -> None:
    sent = events(30 * len(PLACES), seed=21)
    engine = project.engine()
    for number, place in enumerate(PLACES):
        project.land(sent[30 * number : 30 * (number + 1)])
        engine.list_new()
        engine.ingest()
        with dying(place):
            engine.catch_up()
        engine = project.engine()
    engine.catch_up()
    project.compare(project.on_time(), output(project.sent))
    prove(engine)


@dataclass(frozen=True)
class Live:
    """A join whose open rows are shown, too."""

    join: AnyJoin

    @property
    def name(self) -> str:
        return self.join.name

    @property
    def text(self) -> str:
        return f"{self.join.text.rstrip()}\n    live: true\n"

    def results(self, rows: Iterable[Event]) -> Results:
        return self.join.results(rows)


def test_a_live_table_also_shows_what_is_not_final(tmp_path: Path, spark: SparkSession) -> None:
    """The open rows are those of all included rows so far: pairs, and rows that may still get a
    partner. A replay and a drain replace them, too."""
    project = JoinedProject(tmp_path, spark, tuple(map(Live, JOINS)))
    sent = events(200, seed=27)
    engine = project.engine()

    def check(included: Sequence[Event], upto: int | None) -> None:
        project.compare(included, upto)
        for join in project.joins:
            rows = project.rows(join, final=False)
            meant = {} if upto is None else project.expected(join, included, since=upto)
            assert (join.name, rows) == (join.name, meant)
            assert bool(rows) == (upto is not None)
        prove(engine)

    for number, part in enumerate((sent[:70], sent[70:130])):
        project.land(part)
        if number:
            with dying("gold.committed", 3):
                engine.run_all()
            engine = project.engine()
            engine.catch_up()
        else:
            engine.run_all()
        check(project.on_time(), output(project.sent))
    replayed = late(project.sent)
    replay_all(engine)
    check(project.sent, output(project.sent))
    project.land(sent[130:])
    engine = project.engine().run_all()
    included = [event for event in project.sent if event in replayed or event not in late(sent)]
    check(included, output(project.sent))
    engine.drain()
    check(included, None)
    # The open rows go with the first step of a table that is not live any more.
    project.joins = JOINS
    last = replace(max(sent, key=lambda event: event.at), id="last")
    project.land([replace(last, at=last.at + timedelta(minutes=10))])
    engine = project.engine().run_all()
    assert all(row["final"] for row in read(engine.root, "gold/all_of_both", "shop"))


def test_a_restore_and_a_rebuild_give_the_same_pairs(project: JoinedProject) -> None:
    sent = events(150, seed=8)
    engine = project.engine()
    project.land(sent[:60])
    engine.run_all()
    savepoint = engine.savepoint()
    project.land(sent[60:])
    engine.run_all()
    replay_all(engine)
    project.compare(project.sent, output(project.sent))
    rebuilt = project.engine(RebuildRequest(("gold/bought", "silver/purchases")))
    for _ in range(3):
        rebuilt.catch_up()
    project.compare(project.sent, output(project.sent))
    prove(rebuilt)
    rebuilt.restore(savepoint, reread=True)
    again = project.engine()
    project.compare([e for e in sent[:60] if e not in late(sent)], output(sent[:60]))
    again.run_all()
    project.compare(project.on_time(), output(project.sent))
    prove(again)


def test_an_operator_of_another_package_reads_several_tables(
    tmp_path: Path, spark: SparkSession
) -> None:
    more = """
  both:
    union: [clicks, purchases]
    columns: {id: "coalesce(clicks.id, purchases.id)", amount: purchases.amount}
    allowed_lateness: 20 s
"""
    with toys():
        project = JoinedProject(tmp_path, spark, (), more)
        project.land(events(90, seed=3))
        engine = project.engine().run_all()
        rows = read(engine.root, "gold/both", "shop")
        upto = output(project.sent)
        assert {row["id"]: row["amount"] for row in rows} == {
            event.id: event.amount if event.kind == "purchase" else None
            for event in project.on_time()
            if event.time < upto
        }
        prove(engine)


def test_loaded_history_is_in_the_pairs(project: JoinedProject) -> None:
    """All of it is late. It is replayed at the end of the load, and joined with the stream."""
    sent = events(140, seed=17)
    history, stream = sent[:50], sent[50:]
    project.land(stream[:60])
    engine = project.engine().run_all()
    archive = Landing(project.folder / "archive")
    archive.write("1.json", lines(event.line for event in history))
    engine.begin_load(files=str(archive.folder))
    engine.load()
    engine.catch_up()
    project.compare([*history, *project.on_time()], output(project.sent))
    prove(engine)
    project.land(stream[60:])
    engine.run_all()
    project.compare([*history, *project.on_time()], output(project.sent))
    prove(engine)


GATED = """
  bought:
    join: {left: clicks, right: purchases, on: [user], within: 60 s}
    columns: {click: clicks.id, purchase: purchases.id, amount: purchases.amount}
    allowed_lateness: 20 s
    expectations: bought
"""
RULES = """
expectations:
  - {id: paid, expect: amount >= 0}
  - {id: pairs, expect: expect_compound_columns_to_be_unique, column_list: [click, purchase]}
"""


def test_a_gate_holds_pairs_back(tmp_path: Path, spark: SparkSession) -> None:
    """A version with a pair that breaks a rule is not visible, and late rows are not marked for
    it. A person releases it."""
    project = JoinedProject(tmp_path, spark, (), GATED)
    suite = project.folder / "expectations" / "bought.yml"
    suite.parent.mkdir()
    suite.write_text(RULES)
    good = [replace(event, user="ann") for event in events(60, seed=2)]
    project.land(good)
    engine = project.engine().run_all()
    before = read(engine.root, "gold/bought", "shop")
    assert before
    newest = max(event.at for event in good)
    bad = Event("bad", "purchase", "ann", newest, -1)
    later = Event("later", "click", "bob", newest + timedelta(minutes=30), 0)
    project.land([bad, later])
    engine.run_all()
    assert read(engine.root, "gold/bought", "shop") == before
    (hold,) = documents.holds(engine.layout, engine.pipeline)
    assert [each.rule for each in hold.failed] == ["paid"]
    engine.operate("late_replay", table="bought", **{"from": None, "to": None, "keys": {}})
    engine.catch_up()
    assert read(engine.root, "gold/bought", "shop") == before
    given = hold.release("anna@host", "it is a refund", engine.clock())
    documents.release(engine.layout, "bought", given)
    engine.catch_up()
    rows = read(engine.root, "gold/bought", "shop")
    assert -1 in {row["amount"] for row in rows}
    join = Joined("bought", 0, 60)
    assert {f"{row['click']} {row['purchase']}" for row in rows} == set(
        join.results([*good, bad, later])
    )
    prove(engine)


FOLLOWING = """
  per_minute:
    from: near
    window: {{tumbling: 1 minute}}
    by: [who]
    measures: {{pairs: count(*), bought: count(purchase)}}
    allowed_lateness: 20 s
publish:
  finals: {{from: gold.near, jsonl: {{path: "{folder}/finals.jsonl"}}}}
  late: {{from: late.near, jsonl: {{path: "{folder}/late.jsonl"}}}}
  mirror: {{from: gold.near, postgres: {{url: '{url}', table: near}}}}
"""


@pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")
def test_what_reads_a_join_follows_its_corrections(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A click that gets a partner is no longer alone: in a table of windows, in a topic, and in
    PostgreSQL."""
    monkeypatch.setenv("PG_PASSWORD", PASSWORD)
    with toys(), running_server() as server:
        url = server.url.replace(PASSWORD, "${env:PG_PASSWORD}")
        more = FOLLOWING.format(folder=tmp_path, url=url)
        project = JoinedProject(tmp_path / "project", spark, JOINS[1:2], more)
        sent = events(180, seed=13)
        engine = project.engine()

        def check() -> None:
            engine.catch_up()
            engine.publish()
            gold = read(engine.root, "gold/near", "shop")
            topic = kept(tmp_path / "finals.jsonl")
            assert sorted(each["row_id"] for each in topic) == sorted(r["row_id"] for r in gold)
            rows = server.ask("SELECT row_id, click, purchase FROM near")
            names = ("row_id", "click", "purchase")
            assert sorted(map(tuple, rows), key=str) == sorted(
                (tuple(row[name] for name in names) for row in gold), key=str
            )
            per_minute: Counter[tuple[datetime, str | None]] = Counter()
            for row in gold:
                minute = row["event_time"].replace(second=0, microsecond=0)
                per_minute[minute, row["who"]] += 1
            assert per_minute == {
                (row["window_start"], row["who"]): row["pairs"]
                for row in read(engine.root, "gold/per_minute", "shop")
            }
            waiting = sorted(json.loads(line)["value"]["_event_id"] for line in open_late())
            assert waiting == sorted(event.id for event in late(project.sent))

        def open_late() -> list[str]:
            return (tmp_path / "late.jsonl").read_text().splitlines()

        for part in (sent[:90], sent[90:]):
            project.land(part)
            engine.run_all()
            check()
        lines = len((tmp_path / "finals.jsonl").read_text().splitlines())
        engine.operate("late_replay", table="near", **{"from": None, "to": None, "keys": {}})
        check()
        after = (tmp_path / "finals.jsonl").read_text().splitlines()[lines:]
        assert any(json.loads(line)["value"] is None for line in after)
        project.compare(project.sent, output(project.sent))
        prove(engine)


OVER = f"""
  spending:
    over:
      table: purchases
      range: 60 s
{MEASURED}      is_odd: abs(purchases.amount - mean) > spread
    allowed_lateness: 20 s
"""
OVER_COLUMNS = (*MEASURES, "is_odd")
DUCKDB = """
SELECT id, count(*) OVER w, sum(amount) OVER w, avg(amount) OVER w, stddev(amount) OVER w,
       min(amount) OVER w, count(*) FILTER (amount >= 50) OVER w,
       count(DISTINCT amount) OVER w, sum(amount) FILTER (amount < 50) OVER w,
       abs(amount - avg(amount) OVER w) > stddev(amount) OVER w
FROM sent WINDOW w AS (
    PARTITION BY "user" ORDER BY "at" RANGE BETWEEN INTERVAL 60 SECONDS PRECEDING AND CURRENT ROW
)
"""


@pytest.mark.parametrize("sizes", [(150,), (20, 5, 60, 65)])
def test_measures_over_rows_are_those_of_duckdb(
    tmp_path: Path, spark: SparkSession, sizes: Sequence[int]
) -> None:
    project = JoinedProject(tmp_path, spark, (), OVER)
    sent = iter(events(150, seed=31))
    engine = project.engine()
    for size in sizes:
        project.land([next(sent) for _ in range(size)])
        engine.run_all()
    compare_over(project, project.on_time(), output(project.sent))
    prove(engine)
    engine.operate("late_replay", table="spending", **{"from": None, "to": None, "keys": {}})
    engine.catch_up()
    compare_over(project, project.sent, output(project.sent))
    engine.drain()
    compare_over(project, project.sent, None)
    prove(engine)


def compare_over(project: JoinedProject, included: Sequence[Event], upto: int | None) -> None:
    bought = [event for event in included if event.kind == "purchase"]
    columns = {name: [getattr(e, name) for e in bought] for name in ("id", "user", "at", "amount")}
    with duckdb.connect() as connection:
        connection.register("sent", pa.table(columns))
        expected = {row[0]: row[1:] for row in connection.execute(DUCKDB).fetchall()}
    times = {event.id: event.time for event in bought}
    expected = {i: row for i, row in expected.items() if upto is None or times[i] < upto}
    found = {
        row["purchase"]: tuple(row[name] for name in OVER_COLUMNS)
        for row in read(project.root, "gold/spending", "shop")
    }
    require_same(found, expected)
