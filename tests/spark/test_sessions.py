"""Sessions: equal to Spark's, and to their definition in plain Python through drains, late replays
that join sessions, and backfills. test_operator_contract.py has batches, restarts and restores."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.gates import documents
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from tests.oracle.sessions import bounds, sessions
from tests.support.backfilled import backfill, publish, unequal
from tests.support.compacted import kept
from tests.support.engine import Engine
from tests.support.failing import failing
from tests.support.landing import Landing, lines, split
from tests.support.postgres import PASSWORD, Server, is_there, running_server
from tests.support.readings import NOON as ARRIVED
from tests.support.rounds import in_full
from tests.support.suite_project import SuiteProject
from tests.support.tables import Row, read, state
from tests.support.toys import toys

pytestmark = pytest.mark.spark

DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, user: string, page: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
  visits:
    from: clean
    window: {{session: 1 minute}}
    by: [user]
    where: page > 0
    measures:
      events: count(*)
      total: sum(page)
      entry: first(page)
      exit: last(page)
      pages: collect_list(page, 3)
      others: count_distinct(page) filter (where page != 3)
    columns: {{mean: total / events}}
    allowed_lateness: 2 minutes
  together:
    from: clean
    window: {{session: {{gap: 20 s}}}}
    measures: {{events: count(*)}}
    allowed_lateness: 30 s
"""
GAPS = {"visits": timedelta(minutes=1), "together": timedelta(seconds=20)}
LATENESS = {"visits": timedelta(minutes=2), "together": timedelta(seconds=30)}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, MICRO = timedelta(seconds=1), timedelta(microseconds=1)
FILES = 6
BRIDGED = ((37, 37), (37.5, 37.5), (39, 39), (39.8, 39.8), (40.6, 40.6), (41, 38.2))
"""The minutes of arrivals and event times of user ``bridged``: a session that is final after five
files, one that is open, and a late event that is a part of both."""
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}


def declare(folder: Path, landing: Landing, more: str = "") -> Pipeline:
    file = folder / "clicks.yml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(DECLARATION.format(landing=landing.folder) + more)
    return load(file)


def event(number: int, user: str | None, page: int, at: datetime) -> bytes:
    said = {"id": f"c-{number}", "user": user, "page": page, "at": at.isoformat()}
    return json.dumps(said).encode()


def events(count: int, seed: int) -> list[bytes]:
    """50 minutes of five users. Users pause; many events are late, and some are exactly a gap after
    another. User ``bot`` never pauses."""
    chance, made = random.Random(seed), list[bytes]()
    last = dict[str | None, datetime]()
    for number in range(count):
        at = NOON + timedelta(minutes=50) * number / count
        user = chance.choice(("a", "a", "b", "c", None, "bot", "bot"))
        dice = chance.random()
        if dice < 0.15:
            at -= chance.random() * timedelta(minutes=8)
        elif dice < 0.25:
            at -= chance.random() * timedelta(minutes=30)
        elif dice < 0.35 and user in last:
            at = last[user] + GAPS["visits"] + chance.choice((0, 0, 1)) * MICRO
        last[user] = at
        made.append(event(number, user, chance.randrange(7), at))
    for number, (arrival, minutes) in enumerate(reversed(BRIDGED)):
        at = NOON + timedelta(minutes=minutes)
        made.insert(round(arrival * count / 50), event(count + number, "bridged", 1, at))
    return made


def time_of(row: Row) -> datetime:
    found: datetime = row["_event_time"]
    return found


def groups(rows: Iterable[Row], table: str) -> Iterable[tuple[Any, list[Row]]]:
    """The sessions of some rows, each with its bounds and key."""
    by_key: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row["user"] if table == "visits" else ""].append(row)
    for key, of_key in by_key.items():
        for session in sessions(of_key, time_of, GAPS[table]):
            yield (*bounds(session, time_of, GAPS[table]), key), session


def values(table: str, rows: list[Row]) -> tuple[Any, ...]:
    if table == "together":
        return (len(rows),)
    in_order = [r["page"] for r in sorted(rows, key=lambda r: (time_of(r), r["_offset"]))]
    others = len({page for page in in_order if page != 3})
    total = sum(in_order)
    return len(rows), total, in_order[0], in_order[-1], in_order[:3], others, total / len(rows)


VALUES = {
    "visits": ("events", "total", "entry", "exit", "pages", "others", "mean"),
    "together": ("events",),
}


class Expected:
    """What a table should have for the rows of silver. ``replayed`` says which late rows are
    folded."""

    def __init__(
        self,
        engine: Engine,
        table: str,
        replayed: Callable[[Row], bool] = lambda row: False,
    ) -> None:
        said = state(engine.root, f"gold/{table}")["watermark"]
        self.final_before = EPOCH + timedelta(microseconds=said) - LATENESS[table]
        included = list[Row]()
        for row in read(engine.root, "silver/clean"):
            if table == "visits" and row["page"] <= 0:
                continue
            is_late = row["_clock"] is not None and row["_clock"] > time_of(row) + LATENESS[table]
            if not is_late or replayed(row):
                included.append(row)
        self.rows = dict[Any, Any]()
        for (begin, end, key), session in groups(included, table):
            is_final = end < self.final_before
            self.rows[begin, end, key] = (*values(table, session), is_final)


def actual(engine: Engine, table: str) -> Mapping[Any, Any]:
    names = VALUES[table]
    gold = read(engine.root, f"gold/{table}")
    rows = {
        (row["window_start"], row["window_end"], row.get("user", "")): (
            *(row[name] for name in names),
            row["final"],
        )
        for row in gold
    }
    assert len(rows) == len(gold)
    return rows


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(events(250, seed=3), FILES))
    return landing


def test_a_drain_closes_sessions(spark: SparkSession, tmp_path: Path, landing: Landing) -> None:
    engine = Engine(spark, declare(tmp_path, landing), tmp_path / "root").run_all()
    engine.drain()
    last = {t: max(r["window_end"] for r in read(engine.root, f"gold/{t}")) for t in GAPS}
    for table, closed in last.items():
        end = final_up_to(engine.layout, engine.pipeline, table)
        assert end is not None
        assert end >= closed
    after = [event(9001, "a", 1, last["visits"]), event(9002, "a", 1, last["visits"] + MICRO)]
    landing.write("z-after.json", lines(after))
    engine.list_new()
    engine.ingest()
    engine.catch_up()
    (late,) = [r for r in read(engine.root, "late/visits") if r["_event_id"] == "c-9001"]
    assert late["reason"] == "closed"
    (new,) = [r for r in read(engine.root, "gold/visits") if not r["final"]]
    assert (new["window_start"], new["events"]) == (last["visits"] + MICRO, 1)


@in_full  # short runs: test_operator_contract.py
def test_late_replays_and_backfills(spark: SparkSession, tmp_path: Path, landing: Landing) -> None:
    """A replay joins final sessions, and final with open ones. Backfills give the same rows."""
    engine = Engine(spark, declare(tmp_path, landing), tmp_path / "root")
    engine.list_new()
    for number in range(1, FILES):
        engine.ingest(number)
        engine.catch_up()
    before = {table: actual(engine, table) for table in GAPS}
    for table in GAPS:
        engine.operate("late_replay", table=table, **EVERYTHING)
    engine.catch_up()

    def is_replayed(table: str) -> Callable[[Row], bool]:
        late = read(engine.root, f"late/{table}")
        upto = {row["_event_id"] for row in late if row["replayed"]}
        return lambda row: row["_event_id"] in upto

    for table in GAPS:
        expected = Expected(engine, table, replayed=is_replayed(table))
        assert actual(engine, table) == expected.rows
        gone = {key for key, row in before[table].items() if row[-1]} - expected.rows.keys()
        assert gone
        assert all(row["replayed"] for row in read(engine.root, f"late/{table}"))
    (joined,) = [row for row in actual(engine, "visits").items() if row[0][2] == "bridged"]
    assert (joined[1][0], joined[1][-1]) == (len(BRIDGED), False)
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    engine.ingest()
    engine.catch_up()
    for table in GAPS:
        assert actual(engine, table) == Expected(engine, table, replayed=is_replayed(table)).rows
        revisions = {row["revision"] for row in read(engine.root, f"gold/{table}")}
        assert revisions == {0, 1}
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    recomputed(engine, dict.fromkeys(GAPS, WHOLE))
    recomputed(engine, dict.fromkeys(GAPS, minutes_of(7, 31)))
    assert unequal(backfill(engine, begin=NOON - timedelta(days=1))) == []
    for minutes in range(0, 50, 20):
        begin = NOON + timedelta(minutes=minutes)
        end = begin + timedelta(minutes=20)
        found = backfill(engine, begin=begin, end=end)
        assert unequal(found) == []
        for each in found.report.tables:
            rows = [r for r in read(engine.root, f"gold/{each.table}") if r["final"]]
            inside = [r for r in rows if r["window_start"] >= begin and r["window_end"] <= end]
            assert each.equal == len(inside)


def minutes_of(begin: int, end: int) -> EventTimeRange:
    noon, minute = (NOON - EPOCH) // MICRO, timedelta(minutes=1) // MICRO
    return EventTimeRange(noon + begin * minute, noon + end * minute)


def recomputed(engine: Engine, ranges: Mapping[str, EventTimeRange]) -> None:
    """Gold is what the definition gives for silver."""
    done = recompute(engine.spark, engine.layout, engine.pipeline, ranges, engine.clock())
    for each in done.tables:
        rows = read(engine.root, f"gold/{each.table}")
        if (span := ranges[each.table]) != WHOLE:
            begin, end = (EPOCH + time * MICRO for time in (span.begin, span.end))
            rows = [r for r in rows if begin <= r["window_start"] and r["window_end"] <= end]
        assert (each.changed, each.missing, each.extra) == (0, 0, 0)
        assert each.equal == len(rows) > 0


def test_a_published_backfill_and_a_replay_leave_sessions_that_do_not_meet(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    """Another declaration has other sessions. Those that meet one outside of the range stay."""
    engine = Engine(spark, declare(tmp_path, landing), tmp_path / "root").run_all()
    before = actual(engine, "visits")
    file = tmp_path / "changed.yml"
    file.write_text(engine.pipeline.text.replace("where: page > 0", "where: page > 2"))
    span = minutes_of(5, 35)
    begin, end = (EPOCH + time * MICRO for time in (span.begin, span.end))
    tables = ["visits"]
    outcome = backfill(engine, begin=begin, end=end, tables=tables, used=load(file))
    publish(engine, outcome)
    engine.take_in()
    corrected = actual(engine, "visits")
    gone, new = before.keys() - corrected.keys(), corrected.keys() - before.keys()
    assert gone
    assert new
    assert all(begin <= key[0] and key[1] <= end for key in gone | new)
    require_apart(corrected)
    kinds = {"changed": 0, "missing": 0, "extra": 0}

    def of_definition() -> Mapping[str, int]:
        asked = {"visits": WHOLE}
        done = recompute(spark, engine.layout, engine.pipeline, asked, engine.clock())
        (table,) = done.tables
        assert {kind: getattr(table, kind) for kind in kinds} == kinds
        return table.corrected

    assert of_definition()[outcome.report.id] >= len(new)
    engine.operate("late_replay", table="visits", **EVERYTHING)
    engine.catch_up()
    replayed = actual(engine, "visits")
    require_apart(replayed)
    assert {key: replayed[key] for key in new} == {key: corrected[key] for key in new}
    marks = {row["replayed"] is None for row in read(engine.root, "late/visits")}
    assert marks == {True, False}
    assert of_definition()
    assert by_id(engine.layout, engine.pipeline).findings == ()

    publish(engine, backfill(engine, begin=begin, end=end, tables=tables))
    engine.take_in()
    assert of_definition() == {}
    engine.operate("late_replay", table="visits", **EVERYTHING)
    engine.catch_up()
    assert all(row["replayed"] for row in read(engine.root, "late/visits"))
    expected = Expected(engine, "visits", replayed=lambda row: True)
    assert actual(engine, "visits") == expected.rows
    assert of_definition() == {}
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def require_apart(rows: Mapping[Any, Any]) -> None:
    """Sessions of one user do not meet."""
    by_user: dict[Any, list[Any]] = defaultdict(list)
    for begin, end, user in rows:
        by_user[user].append((begin, end))
    for of_user in by_user.values():
        of_user.sort()
        assert all(end < begin for (_, end), (begin, _) in pairwise(of_user))


PUBLISH = """
publish:
  all: {{from: gold.visits, when: update, jsonl: {{path: "{folder}/all.jsonl"}}}}
  finals: {{from: gold.visits, when: final, jsonl: {{path: "{folder}/finals.jsonl"}}}}
  mirror: {{from: gold.visits, when: update, postgres: {{url: '{url}', table: visits}}}}
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


def in_short(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    names = ("window_start", "window_end", "user", "events", "final")
    return sorted((tuple(row[name] for name in names) for row in rows), key=str)


def with_times(row: Row) -> Row:
    return row | {
        name: datetime.fromisoformat(row[name]) for name in ("window_start", "window_end")
    }


@pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")
def test_a_topic_and_a_mirror_have_the_sessions_of_the_table(
    spark: SparkSession,
    tmp_path: Path,
    landing: Landing,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sessions that are joined, by a batch or by a replay, leave no second one."""

    def check_sinks(engine: Engine) -> None:
        engine.catch_up()
        engine.publish()
        gold = read(engine.root, "gold/visits")
        finals = in_short(row for row in gold if row["final"])
        assert in_short(map(with_times, kept(tmp_path / "all.jsonl"))) == in_short(gold)
        assert in_short(map(with_times, kept(tmp_path / "finals.jsonl"))) == finals
        columns = 'window_start, window_end, "user", events, final'
        mirrored = server.ask(f"SELECT {columns} FROM visits")
        assert sorted(map(tuple, mirrored), key=str) == in_short(gold)

    with toys():
        monkeypatch.setenv("PG_PASSWORD", PASSWORD)
        (tmp_path / "finals.jsonl").touch()
        declared = PUBLISH.format(
            folder=tmp_path, url=server.url.replace(PASSWORD, "${env:PG_PASSWORD}")
        )
        pipeline = declare(tmp_path, landing, declared)
        engine = Engine(spark, pipeline, tmp_path / "root")
        engine.list_new()
        for number in range(1, FILES):
            engine.ingest(number)
            check_sinks(engine)
        before = len((tmp_path / "finals.jsonl").read_text().splitlines())
        engine.operate("late_replay", table="visits", **EVERYTHING)
        check_sinks(engine)
        sent = (tmp_path / "finals.jsonl").read_text().splitlines()[before:]
        assert any(json.loads(line)["value"] is None for line in sent)
        engine.ingest()
        check_sinks(engine)
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(ids) == len(set(ids))


def test_they_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Of rows in order, which are never late."""
    landing = Landing(tmp_path / "landing")
    chance, at = random.Random(8), NOON
    made = []
    for number in range(200):
        at += chance.choice((0, 1, 7, 19, 20, 21, 59)) * SECOND
        made.append(event(number, chance.choice("abc"), 1 + chance.randrange(5), at))
    landing.write_all(split(made, 3))
    engine = Engine(spark, declare(tmp_path, landing), tmp_path / "root").run_all()
    silver = spark.createDataFrame(
        [(r["user"], r["page"], r["_event_time"]) for r in read(engine.root, "silver/clean")],
        "user string, page int, at timestamp",
    )
    window = F.session_window("at", "1 minute")
    found = silver.groupBy(window, "user").agg(F.count("*"), F.sum("page")).collect()
    wanted = {
        (w.start.replace(tzinfo=UTC), w.end.replace(tzinfo=UTC), user): (count, total)
        for w, user, count, total in found
    }
    gold = actual(engine, "visits")
    assert {key: row[:2] for key, row in gold.items()} == wanted
    assert len(wanted) > 20


GATED = """
silver: {clean: {from: raw}}
gold:
  visits:
    from: clean
    window: {session: 1 minute}
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 0 s
    expectations: visits
"""


def test_two_sessions_are_joined_while_a_gate_holds_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = SuiteProject(tmp_path, spark, GATED, "visits")
    project.write_rules("expectations: [{id: sane, expect: total < 100}]\n")

    def deliver(*minutes: float, level: int = 1) -> None:
        project.land(
            {
                "id": f"{minute}-{level}",
                "site": "a",
                "level": level,
                "at": (ARRIVED + timedelta(minutes=minute)).isoformat(),
            }
            for minute in minutes
        )

    def visits() -> list[tuple[int, int]]:
        rows = project.read("gold/visits")
        return sorted((row["events"], row["total"]) for row in rows)

    engine = project.engine()
    for minutes in ((0, 0.5), (2, 2.5), (9,)):
        deliver(*minutes)
        engine.run_all()
    deliver(1.25)  # it joins the first two sessions, which are final
    engine.run_all()
    assert visits() == [(1, 1), (2, 2), (2, 2)]
    deliver(20, level=500)
    engine.run_all()
    engine.operate("late_replay", table="visits", **EVERYTHING)
    with failing("gate.validated"):
        documents.ask_retry(engine.layout, "visits", engine.clock())
        engine.catch_up()
    engine = project.engine()
    engine.catch_up()
    assert visits() == [(1, 1), (2, 2), (2, 2)], "nothing of what is held is visible"
    held = documents.hold_reason(engine.layout, "visits")
    assert held is not None
    given = held.release("anna@host", "a real outlier", engine.clock())
    documents.release(engine.layout, "visits", given)
    engine.catch_up()
    assert documents.hold_reason(engine.layout, "visits") is None
    assert visits() == [(1, 1), (1, 500), (5, 5)]
    (joined,) = (row for row in project.read("gold/visits") if row["events"] == 5)
    assert joined["revision"] == 1
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
