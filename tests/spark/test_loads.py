"""History that is loaded beside a stream: every record is accounted for, and the tables are those
of a pipeline that has begun with the history."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.load import load as read_declaration
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.flow.bronze import stage as bronze_stage
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.errors import SourceError
from headgate.history.loads import requests
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.oracle import Closing, OtherDecision, Replay, derive
from tests.oracle.rules import Happening
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.failing import dying
from tests.support.landing import Landing, loaded, split
from tests.support.readings import GOLD, GOLD_KEYS, NOON, declare, rules
from tests.support.rounds import in_full
from tests.support.ruled import declare_ruled, ruled
from tests.support.tables import SOURCE, differences, read

pytestmark = pytest.mark.spark

VALUES = readings(600, seed=21)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split([*VALUES[200:400], *VALUES[:30]], 2))
    return landing


@pytest.fixture
def archive(tmp_path: Path) -> Landing:
    """Some of its ids are known, some come again in the stream; its windows are final or open."""
    archive = Landing(tmp_path / "archive")
    archive.write_all(split(VALUES[:300], 3))
    return archive


def last_of(landing: Landing) -> int:
    return max((record.offset for record in landing.records()), default=-1)


def replays(after: int, number: int = 1, gold: Iterable[str] = GOLD_KEYS) -> list[Happening]:
    """The decisions of a load that is carried out alone: that it begins, and its replays."""
    folding = [Replay({0: after}, name, load=number) for name in gold]
    return [OtherDecision(), *folding]


def file_by_file(folder: Path, landing: Landing) -> Pipeline:
    """The pipeline with one batch for each file."""
    pipeline = declare(folder, landing.folder, gold=("bands",))
    text = pipeline.text.replace("settle:", "max_files_per_batch: 1, settle:")
    pipeline.file.write_text(text)
    return read_declaration(pipeline.file)


def sound(engine: Engine) -> None:
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def wishes(engine: Engine) -> Sequence[str]:
    return [each.wish for each in requests.all_loads(engine.layout, engine.pipeline.name)]


def test_every_record_of_a_load_is_where_it_should_be(
    spark: SparkSession, tmp_path: Path, landing: Landing, archive: Landing
) -> None:
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    last = last_of(landing)
    request = engine.begin_load(files=str(archive.folder))
    engine.load()
    sound(engine)
    assert wishes(engine) == ["done"]
    landing.write_all(split([*VALUES[400:], *VALUES[100:150]], 1), first=3)
    engine.run_all()
    sound(engine)
    expected = derive(
        [*landing.records(), *loaded(archive, {0: last})],
        rules(gold=GOLD),
        drains=replays(last, gold=GOLD),
    )
    assert differences(engine.root, expected) == {}
    (load,) = engine.bronze_loads()
    assert (load.id, load.rows) == (request.id, len(archive.records()))
    of_load = [row for row in read(engine.root, f"bronze/{SOURCE}") if row["offset"] < 0]
    assert {Path(row["file"]).parent for row in of_load} == {archive.folder}
    # A rebuild in larger steps gives the same tables, with the replays at their places.
    anew = RebuildRequest(("silver/clean", "silver/strong"))
    Engine(spark, engine.pipeline, engine.root, now=engine.now, anew=anew).catch_up()
    assert differences(engine.root, expected) == {}


@in_full
def test_tables_are_those_of_a_pipeline_that_has_begun_with_the_history(
    spark: SparkSession, tmp_path: Path, archive: Landing
) -> None:
    """Both pipelines have folded all late rows, so the order of the archive does not matter."""
    first = declare(tmp_path, tmp_path / "both", gold=("sliding", "bands"))
    text = first.text
    for lateness in ("10 seconds", "1 minute", "0 seconds"):
        text = text.replace(f"allowed_lateness: {lateness}", "allowed_lateness: 300 days")
    first.file.write_text(text)
    both = Landing(tmp_path / "both")
    both.write_all([*split(VALUES[:300], 3), *split(VALUES[250:], 1)])
    begun = Engine(spark, read_declaration(first.file), tmp_path / "begun").run_all()
    begun.drain()

    live = Landing(tmp_path / "live")
    live.write_all(split(VALUES[250:], 1))
    pipeline = declare(tmp_path, live.folder, gold=("sliding", "bands"))
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    engine.drain()
    engine.begin_load(files=str(archive.folder / "*.json"))
    engine.load()
    for name in pipeline.gold:
        engine.operate("late_replay", table=name, **{"from": None, "to": None, "keys": {}})
    engine.catch_up()
    sound(engine)
    for path, ours in ((f"gold/{name}", (*GOLD_KEYS[name],)) for name in pipeline.gold):
        found, expected = (
            {tuple(row[key] for key in ours): _values(row) for row in read(root, path)}
            for root in (engine.root, begun.root)
        )
        assert found == expected
    ids = [{row["_event_id"] for row in read(e.root, "silver/clean")} for e in (engine, begun)]
    assert ids[0] == ids[1]


def _values(row: dict[str, object]) -> dict[str, object]:
    return {k: v for k, v in row.items() if k not in ("revision", "updated_at", "final")}


def test_it_goes_on_wherever_the_driver_dies(
    spark: SparkSession, tmp_path: Path, landing: Landing, archive: Landing
) -> None:
    """A drain comes before the load, and a batch of the stream in the middle of the load."""
    pipeline = file_by_file(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    engine.drain()
    first = last_of(landing)
    engine.begin_load(files=str(archive.folder / "**"), share=1.0)
    for place in ("bronze.staged", "bronze.committed", "silver.committed"):
        with dying(place):
            engine.start().load()
    engine.start().load(1)
    (load,) = engine.bronze_loads()
    had = load.offsets["sequence"]
    assert had < 3, "the stream has a batch before the last of the load"
    landing.write_all(split(VALUES[400:], 1), first=3)
    engine.run_all()
    second = last_of(landing)
    for place in (
        "load.ingested",
        "load.replay_intended",
        "operation.staged",
        "operation.table_done",
    ):
        with dying(place):
            engine.start().load()
    engine.start().load()
    sound(engine)
    assert wishes(engine) == ["done"]
    happenings = [Closing({0: first}), *replays(second, gold=("bands",))]
    early, late = (loaded(archive, {0: after}, happenings=1) for after in (first, second))
    came = [
        one if (one.offset + (1 << 56)) >> 36 < had else other
        for one, other in zip(early, late, strict=True)
    ]
    records = [*landing.records(), *came]
    expected = derive(records, rules(gold=("bands",)), drains=happenings)
    assert differences(engine.root, expected) == {}


def test_a_copy_in_a_load_takes_no_place_of_a_rejected_row(
    spark: SparkSession, tmp_path: Path, archive: Landing
) -> None:
    """A copy in the stream takes its place, before or after the load."""
    gold, at = ("bands",), NOON + timedelta(minutes=20)
    bad, good = (
        [reading(f"x-{n}", at, site=site, value=1) for n in range(4)]
        for site in ("nowhere", "north")
    )
    landing = Landing(tmp_path / "landing")
    landing.write_all(split([*bad[:2], good[0], *VALUES[200:260]], 1))
    pipeline = declare_ruled(tmp_path, landing.folder, gold)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    last = last_of(landing)
    archive.write_all(split([*good[:3], bad[2], bad[3], good[3]], 1), first=4)
    engine.begin_load(files=str(archive.folder))
    engine.load()
    landing.write_all(split([good[1], good[2], *VALUES[240:300]], 1), first=2)
    engine.run_all()
    sound(engine)
    records = [*landing.records(), *loaded(archive, {0: last})]
    expected = derive(records, ruled(gold), drains=replays(last, gold=gold))
    taken = [row for row in expected.silver["clean"] if row["_event_id"].startswith("x-")]
    assert [row["_offset"] >= 0 for row in taken] == [False, True, True]
    assert differences(engine.root, expected) == {}


def test_ids_of_loads_are_known_to_a_new_driver(
    spark: SparkSession, tmp_path: Path, archive: Landing
) -> None:
    """Also ids that are later than all that the stream has sent, and ids that two loads share."""
    landing, newer = Landing(tmp_path / "landing"), Landing(tmp_path / "newer")
    landing.write_all(split(VALUES[:50], 1))
    newer.write_all(split(VALUES[250:400], 1))
    pipeline = declare(tmp_path, landing.folder, gold=("bands",))
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    last = last_of(landing)
    for each in (newer, archive):
        engine.begin_load(files=str(each.folder))
        engine.start().load()
    landing.write_all(split(VALUES[300:], 1), first=2)
    engine.start().run_all()
    sound(engine)
    folded = [each.document["load"] for each in engine.operations()]
    numbers = {load.id: load.number for load in engine.bronze_loads()}
    assert {*numbers.values()} == {1, 2}
    came = [*loaded(newer, {0: last}), *loaded(archive, {0: last}, 2, happenings=4)]
    first, second = (
        [Replay({0: last}, "bands", load=number) for id_ in folded if numbers[id_] == number]
        for number in (1, 2)
    )
    # Each load begins, and the first one is done before the second begins.
    other = OtherDecision()
    drains: list[Happening] = [other, *first, other, other, *second]
    expected = derive([*landing.records(), *came], rules(gold=("bands",)), drains=drains)
    assert differences(engine.root, expected) == {}


@in_full
def test_workers_decode_what_is_large(
    spark: SparkSession,
    tmp_path: Path,
    landing: Landing,
    archive: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bronze_stage, "IN_DRIVER", 0)
    pipeline = declare(tmp_path, landing.folder, gold=("bands",))
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    engine.begin_load(files=str(archive.folder))
    engine.load()
    last = last_of(landing)
    records = [*landing.records(), *loaded(archive, {0: last})]
    expected = derive(records, rules(gold=("bands",)), drains=replays(last, gold=("bands",)))
    assert differences(engine.root, expected) == {}


def test_a_load_whose_files_change_is_stopped_and_goes_on(
    spark: SparkSession, tmp_path: Path, landing: Landing, archive: Landing
) -> None:
    """The stream continues without the load. A damaged file is skipped and recorded."""
    pipeline = declare(tmp_path, landing.folder, gold=("bands",))
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    damaged = archive.folder / "00004.json.gz"
    damaged.write_bytes(gzip.compress(b"{}\n" * 100)[:-20])
    request = engine.begin_load(files=str(archive.folder))
    (archive.folder / "00002.json").rename(tmp_path / "away")
    engine.load()
    (stopped,) = requests.all_loads(engine.layout, engine.pipeline.name)
    assert stopped.wish == "stopped"
    assert "00002.json" in stopped.why
    assert "vanished" in stopped.why
    engine.run_all()
    (tmp_path / "away").rename(archive.folder / "00002.json")
    engine.change_load(request, wish="open", why="")
    engine.load()
    assert wishes(engine) == ["done"]
    sound(engine)
    (source,) = pipeline.sources.values()
    place = DeployedSource(engine.layout.storage, pipeline.name, source)
    folder = requests.load_folder(engine.layout, request.id)
    assert set(connector_of(source).passed_over(place, folder)) == {"00004.json.gz"}


@in_full
def test_a_load_of_before_a_restored_savepoint_goes_on_from_there(
    spark: SparkSession, tmp_path: Path, landing: Landing, archive: Landing
) -> None:
    pipeline = file_by_file(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    before = engine.savepoint()
    engine.begin_load(files=str(archive.folder))
    engine.load(1)
    middle = engine.savepoint()
    engine.load()
    assert wishes(engine) == ["done"]
    done = engine.savepoint()
    engine.restore(middle, reread=True)
    (load,) = engine.start().bronze_loads()
    assert 0 < load.rows < len(archive.records())
    (request,) = requests.all_loads(engine.layout, engine.pipeline.name)
    engine.change_load(request, wish="open")
    engine.load()
    sound(engine)
    last = last_of(landing)
    records = [*landing.records(), *loaded(archive, {0: last})]
    expected = derive(records, rules(gold=("bands",)), drains=replays(last, gold=("bands",)))
    assert differences(engine.root, expected) == {}
    engine.restore(before, reread=True)
    engine.start()
    assert engine.bronze_loads() == ()
    engine.load()  # no load is open: one that was taken back does not start again
    assert differences(engine.root, derive(landing.records(), rules(gold=("bands",)))) == {}
    assert done.bronze["raw"].n > before.bronze["raw"].n


@in_full
def test_a_load_comes_again_after_bronze_was_read_again(
    spark: SparkSession, tmp_path: Path, landing: Landing, archive: Landing
) -> None:
    pipeline = declare(tmp_path, landing.folder, gold=("bands",))
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    engine.begin_load(files=str(archive.folder))
    engine.load()
    changed = pipeline.text.replace("future_after: 1 hour", "future_after: 61 minutes")
    assert changed != pipeline.text
    pipeline.file.write_text(changed)
    anew = RebuildRequest(changed=True)
    other = read_declaration(pipeline.file)
    engine = Engine(spark, other, engine.root, now=engine.now, anew=anew)
    assert wishes(engine) == ["open"]
    engine.load()
    assert wishes(engine) == ["open"], "not while bronze is rebuilt"
    engine.run_all()
    assert engine.bronze_loads() == ()
    engine.load()
    sound(engine)
    last = last_of(landing)
    records = [*landing.records(), *loaded(archive, {0: last})]
    expected = derive(records, rules(gold=("bands",)), drains=replays(last, gold=("bands",)))
    assert differences(engine.root, expected) == {}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("nothing/*.json", "no file matches"),
        ("landing/*.json", "landing folder"),
        ("**", "landing folder"),
    ],
)
def test_what_cannot_be_loaded_is_refused_at_once(
    spark: SparkSession, tmp_path: Path, landing: Landing, pattern: str, said: str
) -> None:
    pipeline = declare(tmp_path, landing.folder, gold=("bands",))
    engine = Engine(spark, pipeline, tmp_path / "root")
    with pytest.raises(SourceError, match=said):
        engine.begin_load(files=str(tmp_path / pattern))
    assert requests.all_loads(engine.layout, engine.pipeline.name) == ()
