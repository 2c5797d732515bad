"""A replay of late rows never takes back what a published backfill has corrected: it leaves these
rows waiting, and says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.cli import late_corrected
from headgate.cli.late_corrected import left_out, require_not_corrected
from headgate.cli.main import answer
from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from headgate.errors import HeadgateError
from headgate.flow.operations.late_replay import replay_document
from headgate.history.backfill.report import TableReport
from headgate.history.backfill.running import BackfillOutcome
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.history.recompute.report import RecomputedTable
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.support.backfilled import backfill, publish, unequal
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.failing import failing
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.readings import GOLD_KEYS, declare
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark

EVERYTHING = replay_document("bands")
Key = tuple[Any, ...]


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All windows are final. Late rows wait for results of ``bands``."""
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=10), 4))
    folder = tmp_path_factory.mktemp("lived")
    engine = Engine(spark, declare(folder, landing.folder, gold=("bands",)), folder / "root")
    engine.run_all()
    engine.drain()
    return Prepared(engine)


def by_other(engine: Engine, old: str, new: str, **more: Any) -> BackfillOutcome:
    """A backfill by a declaration in which ``new`` replaces ``old``."""
    assert engine.pipeline.text.count(old) == 1
    file = engine.pipeline.file.with_name("changed.yml")
    file.write_text(engine.pipeline.text.replace(old, new))
    return backfill(engine, used=load(file), **more)


def corrected(engine: Engine, **more: Any) -> tuple[str, Mapping[Key, Row]]:
    """Publish a backfill that corrects some results. Returns its id, and these results."""
    before = rows(engine)
    outcome = by_other(engine, "heaviest: max(weight)", "heaviest: max(weight + 1)", **more)
    publish(engine, outcome)
    engine.take_in()
    changed = {key: row for key, row in rows(engine).items() if row != before.get(key)}
    assert changed
    return outcome.report.id, changed


def key_of(row: Row) -> Key:
    return tuple(row[name] for name in GOLD_KEYS["bands"])


def rows(engine: Engine) -> Mapping[Key, Row]:
    return {key_of(row): row for row in read(engine.root, "gold/bands")}


def late(engine: Engine) -> Mapping[Key, list[int | None]]:
    """The replays that have folded the late rows of each result."""
    found: dict[Key, list[int | None]] = {}
    for row in read(engine.root, "late/bands"):
        level = row["level"]
        band = "high" if level is not None and level >= 5 else "low"
        tenth = None if level is None else int(level / 10)
        found.setdefault((row["window_start"], band, tenth), []).append(row["replayed"])
    return found


def sound(engine: Engine) -> RecomputedTable:
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    ranges = {"bands": WHOLE}
    (table,) = recompute(
        engine.spark, engine.layout, engine.pipeline, ranges, engine.clock()
    ).tables
    assert table.differing == 0
    return table


def notes(engine: Engine) -> Mapping[str, Mapping[str, int]]:
    gold = Table(engine.layout.storage, "gold/bands", pipeline="readings")
    return GoldPayload.of(gold.refresh()).left_out


def replay(engine: Engine, **document: Any) -> None:
    engine.operate("late_replay", **{**EVERYTHING, **document})
    engine.catch_up()


def some_with_late_rows(engine: Engine) -> tuple[datetime, datetime]:
    """The range of a window with late rows for results that gold has; others have some, too."""
    found = sorted({key[0] for key in late(engine).keys() & rows(engine).keys()})
    assert len({key[0] for key in late(engine)}) > 1
    begin = found[len(found) // 2]
    return begin, begin + timedelta(minutes=5)


def test_corrected_results_keep_their_rows_and_their_late_rows_wait(
    lived: Prepared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = lived.copy(tmp_path)
    begin, end = some_with_late_rows(engine)
    waiting = late(engine)
    id_, changed = corrected(engine, begin=begin, end=end)
    touched = changed.keys() & waiting.keys()
    assert touched, "late rows wait for corrected results"
    assert waiting.keys() - changed.keys(), "and for others"
    replay(engine)
    number = engine.operations()[-1].number
    assert late(engine) == {
        key: [None if key in touched else number] * len(each) for key, each in waiting.items()
    }
    assert changed.items() <= rows(engine).items()
    assert sound(engine).corrected == {id_: len(changed)}
    (note,) = left_out(engine.pipeline, engine.layout)
    assert (note.table, note.backfill, note.operation) == ("bands", id_, number)
    assert (note.first, note.end) == (begin, end)
    answer(["late", "list", str(engine.pipeline.file), "--root", str(engine.root)])
    assert f"backfill {id_} has corrected results" in capsys.readouterr().out.replace("\n", " ")
    # A rebuild of the table decides the same.
    before = late(engine)
    anew = RebuildRequest(("gold/bands",))
    rebuilt = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    assert late(rebuilt) == before
    assert {k: r["heaviest"] for k, r in rows(rebuilt).items() if k in changed} == {
        k: r["heaviest"] for k, r in changed.items()
    }
    assert len(notes(rebuilt)) == 1
    sound(rebuilt)


def test_the_way_out_has_the_late_rows_and_the_correction(lived: Prepared, tmp_path: Path) -> None:
    engine = lived.copy(tmp_path)
    begin, end = some_with_late_rows(engine)
    corrected(engine, begin=begin, end=end)
    replay(engine)
    assert notes(engine)
    publish(engine, backfill(engine, begin=begin, end=end))
    engine.take_in()
    assert sound(engine).corrected == {}
    assert notes(engine), "the late rows still wait"
    replay(engine)
    number = engine.operations()[-1].number
    assert {n for each in late(engine).values() for n in each} == {number, number - 2}
    assert notes(engine) == {}
    wanted = lived.copy(tmp_path / "without")
    replay(wanted)
    assert events(engine) == events(wanted), "as if there had been no backfill"
    assert unequal(backfill(engine)) == []
    id_, changed = corrected(engine, begin=begin, end=end)
    assert {k: r["events"] for k, r in changed.items()}.items() <= events(wanted).items()
    assert sound(engine).corrected == {id_: len(changed)}


def events(engine: Engine) -> Mapping[Key, int]:
    return {key: row["events"] for key, row in rows(engine).items()}


def test_a_replay_goes_on_if_it_takes_nothing_back(lived: Prepared, tmp_path: Path) -> None:
    engine, wanted = lived.copy(tmp_path / "a"), lived.copy(tmp_path / "b")
    replay(wanted)
    before = rows(engine)
    corrected(engine)
    publish(engine, backfill(engine))  # gives the rows of the definition again
    engine.take_in()
    assert {key: row["heaviest"] for key, row in rows(engine).items()} == {
        key: row["heaviest"] for key, row in before.items()
    }
    gold = Table(engine.layout.storage, "gold/bands", pipeline="readings")
    assert len(GoldPayload.of(gold.refresh()).backfills) == 2
    replay(engine)
    assert notes(engine) == {}
    assert events(engine) == events(wanted)
    assert None not in {n for each in late(engine).values() for n in each}
    assert sound(engine).corrected == {}


def test_it_is_decided_once_however_the_driver_fails(lived: Prepared, tmp_path: Path) -> None:
    engine = lived.copy(tmp_path)
    begin, end = some_with_late_rows(engine)
    id_, changed = corrected(engine, begin=begin, end=end)
    engine.operate("late_replay", **EVERYTHING)
    for place in ("operation.staged", "operation.table_done", "operation.staged"):
        with failing(place):
            engine.start().catch_up()
    engine.start().catch_up()
    assert changed.items() <= rows(engine).items()
    assert len(notes(engine)) == 1
    assert sound(engine).corrected == {id_: len(changed)}


def test_the_command_is_refused_and_names_the_backfill_and_the_range(
    lived: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = lived.copy(tmp_path)
    begin, end = some_with_late_rows(engine)
    id_, _ = corrected(engine, begin=begin, end=end)
    here(monkeypatch, engine)
    table = engine.pipeline.gold["bands"]
    with pytest.raises(HeadgateError, match=f"backfill {id_} has corrected results from") as error:
        require_not_corrected(engine.pipeline, engine.layout, table, EVERYTHING)
    assert f"{begin:%F %T}Z to {end:%F %T}Z" in error.value.message
    for option in ("late replay", "--to", "--from", "backfill", "--publish"):
        assert option in error.value.remedy
    # The ranges that it names are outside.
    for other in ({"to": commit_time(begin)}, {"from": commit_time(end)}):
        require_not_corrected(engine.pipeline, engine.layout, table, {**EVERYTHING, **other})
        replay(engine, **other)
    assert notes(engine) == {}
    assert {key[0] for key, each in late(engine).items() if None in each} == {begin}


def here(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """The command uses the session of the test."""
    from contextlib import nullcontext

    from headgate.driver import session

    monkeypatch.setattr(session, "passing_session", lambda *_: nullcontext(engine.spark))
    monkeypatch.setattr(late_corrected, "divert_to", lambda *_: None)


def test_the_end_of_a_load_leaves_them_waiting_and_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(300, seed=10), 2))
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=("bands",)), tmp_path / "root")
    engine.run_all()
    begin = sorted(key[0] for key, row in rows(engine).items() if row["final"])[1]
    end = begin + timedelta(minutes=5)
    id_, changed = corrected(engine, begin=begin, end=end)
    archive = Landing(tmp_path / "archive")
    times: Iterable[datetime] = (begin, begin + timedelta(seconds=1), end + timedelta(seconds=2))
    lines = [
        reading(f"old{n}-{level}", time, value=5, level=level, weight=1000.0)
        for n, time in enumerate(times)
        for level in {0 if tenth is None else tenth * 10 for _, _, tenth in changed}
    ]
    archive.write("old.json", b"\n".join(lines) + b"\n")
    engine.begin_load(files=str(archive.folder / "*.json"))
    engine.load()
    assert not engine.loading().is_open(), "the load has ended"
    assert changed.items() <= rows(engine).items()
    folded = [row for row in read(engine.root, "late/bands") if row["_event_id"].startswith("old")]
    assert {row["window_start"] for row in folded if row["replayed"] is None} == {begin}
    assert {row["window_start"] for row in folded if row["replayed"] is not None} >= {end}
    (note,) = left_out(engine.pipeline, engine.layout)
    assert (note.backfill, note.first) == (id_, begin)
    assert isinstance(backfill(engine).report.tables[0], TableReport)
    assert sound(engine).corrected == {id_: len(changed)}
