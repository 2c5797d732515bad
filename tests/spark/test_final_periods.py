"""A follower that reads an hour or a day of gold when it is due always has the rows of the table:
each change of final rows is reported, whatever has made it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from headgate.insight.final_periods.periods import DAY, HOUR, Period
from headgate.insight.final_periods.progress import MOST, Emitted
from headgate.insight.final_periods.rows import FinalRows
from tests.support.backfilled import backfill, publish
from tests.support.engine import Engine
from tests.support.events import reading
from tests.support.landing import Landing
from tests.support.maintained import compacted, trimmed
from tests.support.prepared import Prepared
from tests.support.readings import NOON, declare_few
from tests.support.tables import read

pytestmark = pytest.mark.spark

TABLE = "per_minute"
WEEK = timedelta(days=7)
Rows = frozenset[tuple[tuple[str, str], ...]]


def rows_by(engine: Engine, period: Period) -> dict[datetime, Rows]:
    """The final rows of each period, read with another library than the one that is tested."""
    found: dict[datetime, set[tuple[tuple[str, str], ...]]] = {}
    for row in read(engine.root, f"gold/{TABLE}"):
        if row["final"]:
            end = row["window_end"] - timedelta(microseconds=1)
            start = end.replace(minute=0, second=0, microsecond=0)
            start = start.replace(hour=0) if period == DAY else start
            kept = {k: repr(v) for k, v in row.items() if k not in ("revision", "updated_at")}
            found.setdefault(start, set()).add(tuple(sorted(kept.items())))
    return {start: frozenset(rows) for start, rows in found.items()}


@dataclass
class Follower:
    """Keeps the rows of the periods that it was told to read, as a DAG that follows gold does."""

    period: Period
    progress: Emitted | None = None
    has: dict[datetime, Rows] = field(default_factory=dict)

    def told(self, engine: Engine) -> list[datetime]:
        """Every report until nothing is due; each reported period is read again."""
        told: list[datetime] = []
        while True:
            rows = FinalRows(engine.layout, engine.pipeline, TABLE)
            newest = rows.position()
            if newest is None:
                return told
            before = self.progress or Emitted(0, rows.id, None)
            done = before.done
            if done and not before.upto and not done.may_differ(newest, self.period):
                return told
            upto = before.upto or newest
            starts, self.progress = before.after(rows.due(self.period, done, upto), upto)
            assert len(starts) <= MOST
            now = rows_by(engine, self.period)
            self.has |= {start: now.get(start, frozenset()) for start in starts}
            told += starts
            if not starts:
                return told

    def check(self, engine: Engine) -> list[datetime]:
        """What is reported is exactly what differs from what the follower has."""
        final = rows_by(engine, self.period)
        newest = FinalRows(engine.layout, engine.pipeline, TABLE).position()
        end = self.period.whole(newest.time) if newest else NOON
        complete = {start: rows for start, rows in final.items() if start < end}
        before = dict(self.has)
        differing = {
            start
            for start in complete.keys() | before.keys()
            if complete.get(start, frozenset()) != before.get(start, frozenset())
        }
        told = self.told(engine)
        assert sorted(told) == sorted(differing), "reported are exactly the periods that differ"
        assert {start: rows for start, rows in self.has.items() if rows} == complete
        return told


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Events of two days, then nothing for a week, then one event; the second file has late
    rows: of hours that have rows, and of an hour and a day that have none."""
    landing = Landing(tmp_path_factory.mktemp("landing"))
    folder = tmp_path_factory.mktemp("lived")
    engine = Engine(spark, declare_few(folder, landing.folder), folder / "root")
    first = [
        reading(
            f"a{hour}-{minute}", NOON + timedelta(hours=hour, minutes=minute), value=1.5, weight=0.1
        )
        for hour in (0, 1, 5, 30)
        for minute in (0, 7)
    ]
    landing.write("1.json", b"\n".join(first), NOON + 2 * DAY.length)
    landing.write("2.json", reading("b", NOON + WEEK, value=2), NOON + WEEK)
    late = [
        reading("late-1", NOON + timedelta(hours=1, minutes=1), value=4),
        reading("late-2", NOON + timedelta(hours=8), value=4),
        reading("late-3", NOON + timedelta(days=3), value=4),
    ]
    landing.write("3.json", b"\n".join(late), NOON + WEEK)
    later = [
        reading(f"c{hour}", NOON + WEEK + timedelta(hours=hour), value=3) for hour in (1, 2, 20)
    ]
    landing.write("4.json", b"\n".join(later), NOON + WEEK + timedelta(days=1))
    engine.list_new()
    engine.ingest(1)
    engine.catch_up()
    return Prepared(engine)


@pytest.fixture
def engine(lived: Prepared, tmp_path: Path) -> Engine:
    return lived.copy(tmp_path)


def followers(engine: Engine) -> tuple[Follower, Follower]:
    """Followers that have read everything that is final now."""
    both = Follower(HOUR), Follower(DAY)
    for each in both:
        assert len(each.told(engine)) <= 1, "at first, only the last period is reported"
        newest = FinalRows(engine.layout, engine.pipeline, TABLE).position()
        assert newest is not None
        end = each.period.whole(newest.time)
        each.has = {s: rows for s, rows in rows_by(engine, each.period).items() if s < end}
    return both


def step(engine: Engine, end: int) -> None:
    engine.list_new()
    engine.ingest(end)
    engine.catch_up()


def replay_late(engine: Engine) -> None:
    engine.operate("late_replay", **{"table": TABLE, "from": None, "to": None, "keys": {}})
    engine.catch_up()


def test_a_jump_of_the_watermark_reports_the_hours_and_days_with_rows(engine: Engine) -> None:
    hours, days = followers(engine)
    step(engine, 2)
    assert [each.hour for each in hours.check(engine)] == [17], "the last hour before the jump"
    assert len(days.check(engine)) == 1
    step(engine, 4)
    assert len(hours.check(engine)) == 3
    assert len(days.check(engine)) == 1


def published(engine: Engine) -> None:
    """Publish a backfill by other formulas: rows change, and one is gone."""
    text = engine.pipeline.text.replace("levels: count(level)", "levels: count(value)")
    file = engine.pipeline.file.with_name("changed.txt")
    file.write_text(text.replace("from: clean\n", "from: clean\n    where: id != 'a5-7'\n", 1))
    outcome = backfill(engine, begin=NOON - WEEK, used=load(file))
    (table,) = outcome.report.tables
    assert table.changed
    assert table.gone
    publish(engine, outcome)
    engine.take_in()


def test_corrections_of_every_kind_are_reported_once(engine: Engine) -> None:
    both = followers(engine)

    def checked() -> list[int]:
        return [len(each.check(engine)) for each in both]

    step(engine, 3)
    assert checked() == [1, 1]
    savepoint = engine.savepoint()
    replay_late(engine)
    assert checked() == [3, 2], "two hours of the first day, and one of a day that had no row"
    replay_late(engine)
    assert checked() == [0, 0], "nothing was late any more"
    published(engine)
    assert checked() == [6, 3]
    compacted(engine)
    DeltaTable(str(engine.root / "readings/gold" / TABLE)).optimize.compact()
    engine.start().catch_up()
    assert checked() == [0, 0], "rows have only moved"
    engine.restore(savepoint)
    engine.start().catch_up()
    assert checked() == [6, 3], "the restore takes back the backfill; the replay is repeated"
    step(engine, 4)
    assert checked() == [3, 1]
    anew = RebuildRequest((f"gold/{TABLE}",))
    rebuilt = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    assert [len(each.check(rebuilt)) for each in both] == [0, 0], "a rebuild gives the same rows"


def test_a_restored_table_is_compared_when_it_is_final_again(engine: Engine) -> None:
    savepoint = engine.savepoint()
    step(engine, 2)
    both = followers(engine)
    engine.restore(savepoint)
    engine.start()
    assert [each.told(engine) for each in both] == [[], []], "less is final than before"
    step(engine, 2)
    assert [each.check(engine) for each in both] == [[], []]


def is_gone(engine: Engine, version: int) -> bool:
    """Whether a version can no longer be read."""
    try:
        files = DeltaTable(str(engine.root / "readings/gold" / TABLE), version=version).file_uris()
    except DeltaError:
        return True
    return not all(Path(file).exists() for file in files)


@pytest.mark.parametrize("correct", [replay_late, published])
def test_corrections_are_found_after_old_versions_were_removed(
    engine: Engine, correct: Callable[[Engine], None]
) -> None:
    step(engine, 3)
    both = followers(engine)
    correct(engine)
    trimmed(engine)
    trimmed(engine)
    for each in both:
        position = each.progress.done if each.progress else None
        assert position is not None
        assert is_gone(engine, position.version)
        before = dict(each.has)
        told, now = each.told(engine), rows_by(engine, each.period)
        assert set(told) == {s for s, rows in now.items() if before.get(s) != rows}


def test_after_a_restore_whose_versions_were_removed_every_hour_is_reported(
    engine: Engine,
) -> None:
    step(engine, 3)
    savepoint = engine.savepoint()
    published(engine)
    both = followers(engine)
    engine.restore(savepoint)
    engine.start().catch_up()
    trimmed(engine)
    trimmed(engine)
    told = {each.period: set(each.told(engine)) for each in both}
    assert told == {each.period: set(each.has) for each in both}
    for each in both:
        now: Mapping[datetime, Rows] = rows_by(engine, each.period)
        assert {start: each.has[start] for start in now if start in each.has} == {
            start: rows for start, rows in now.items() if start in each.has
        }


def test_many_periods_are_reported_in_parts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table changes between two parts: each part is of the same version."""
    monkeypatch.setattr("headgate.insight.final_periods.progress.MOST", 2)
    step(engine, 3)
    follower, _ = followers(engine)
    published(engine)
    rows = FinalRows(engine.layout, engine.pipeline, TABLE)
    newest = rows.position()
    assert newest is not None
    assert follower.progress is not None
    due = rows.due(HOUR, follower.progress.done, newest)
    first, after = follower.progress.after(due, newest)
    assert (len(due), len(first), after.upto) == (4, 2, newest)
    assert Emitted.decode(after.encode()) == after
    follower.progress = after
    follower.has |= {start: rows_by(engine, HOUR)[start] for start in first}
    replay_late(engine)
    follower.told(engine)
    final = {start: rows for start, rows in rows_by(engine, HOUR).items() if start < newest.time}
    assert {start: rows for start, rows in follower.has.items() if rows} == final
    assert replace(follower.progress, number=0).upto is None
