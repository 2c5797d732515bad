"""Operations, restores, rebuilds, loads and replays in a pipeline with two sources, whose batch ids
differ. A driver dies in the middle of each. In the end, the tables of each source are the oracle's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.history.replay.corrections import as_refused, corrected_copies, patched_records
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.history.replay.requests import ReplayDocument, request_replay
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.resets import ResetIntent
from headgate.lake.tables.decisions import RESET
from headgate.lake.tables.errors import FencedError
from tests.oracle import Closing, Measure, Replay, SourceRecord, compare
from tests.oracle.rules import Happening
from tests.support.backfilled import backfill, publish
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.failing import dying
from tests.support.landing import ARRIVED, Landing, lines, loaded, split
from tests.support.prepared import Prepared
from tests.support.readings import GOLD_KEYS, NOON, rules
from tests.support.rounds import in_full
from tests.support.several_readings import tables_of
from tests.support.tables import Row, read
from tests.support.two_readings import GOLD, SOURCES, TwoReadings, declare_landings

pytestmark = pytest.mark.spark

RAW_FILES, OTHER_FILES = 6, 5
ALL: dict[str, Any] = {"from": None, "to": None, "keys": {}}


@pytest.fixture(scope="module")
def landings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Landing]:
    """Some ids and positions are in both sources."""
    folder = tmp_path_factory.mktemp("landings")
    made = {name: Landing(folder / name) for name in SOURCES}
    made["raw"].write_all(split(readings(150, seed=31), RAW_FILES))
    made["other"].write_all(split(readings(120, seed=34), OTHER_FILES))
    return made


@pytest.fixture(scope="module")
def begun(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landings: dict[str, Landing]
) -> Prepared:
    """Three files of ``raw`` are three batches, two files of ``other`` are one. All tables have
    them."""
    folder = tmp_path_factory.mktemp("begun")
    pipeline = declare_landings(folder, landings)
    engine = Engine(spark, pipeline, folder / "root")
    list_all(engine)
    for end in (1, 2, 3):
        engine.ingest(end, "raw")
    engine.ingest(2, "other")
    engine.catch_up()
    return Prepared(engine)


@pytest.fixture
def two(begun: Prepared, landings: dict[str, Landing], tmp_path: Path) -> TwoReadings:
    return TwoReadings(begun.copy(tmp_path / "copy"), landings)


def list_all(engine: Engine) -> None:
    for source in engine.pipeline.sources:
        engine.list_new(source)


def finish(engine: Engine) -> None:
    """Ingest what is left of each source, and catch up."""
    for source in engine.pipeline.sources:
        if engine.position_of(source) < engine.files_of(source).log.last_sequence:
            engine.ingest(None, source)
    engine.catch_up()


def by_layer(engine: Engine, jobs: str) -> None:
    if jobs == "fused":
        engine.catch_up()
    else:
        engine.catch_up_per_layer()


def batch_ids(engine: Engine) -> dict[str, int]:
    return {source: engine.bronze_of(source).refresh().n for source in engine.pipeline.sources}


@in_full
@pytest.mark.parametrize("jobs", ["fused", "per layer"])
def test_an_operation_takes_place_between_two_batches_of_each_source(
    two: TwoReadings, jobs: str
) -> None:
    engine = two.engine
    engine.ingest(4, "raw")
    engine.ingest(3, "other")
    with dying("operation.intended"):
        engine.operate("drain")
    engine.start()
    (drain,) = engine.decisions().operations
    assert {name: at.n for name, at in drain.position.items()} == {"raw": 4, "other": 2}
    engine.ingest(5, "raw")
    for place in ("operation.staged", "operation.table_done"):
        with dying(place):
            by_layer(engine, jobs)
        engine.start()
    engine.operate("late_replay", table="raw_bands", **ALL)
    engine.operate("late_replay", table="other_bands", **ALL)
    engine.ingest(5, "other")
    with dying("operation.table_done"):
        by_layer(engine, jobs)
    engine.start()
    engine.ingest(6, "raw")
    by_layer(engine, jobs)
    two.check_ledger()
    meant: dict[str, list[Happening | None]] = {
        "raw": [Closing(two.upto("raw", 4)), Replay(two.upto("raw", 5), "bands"), None],
        "other": [Closing(two.upto("other", 3)), None, Replay(two.upto("other", 3), "bands")],
    }
    for source in SOURCES:
        expected = two.expected(source, meant[source])
        assert {row["reason"] for row in expected.late["sliding"]} == {"late", "closed"}
        replayed = {row["replayed"] is None for row in expected.late["bands"]}
        assert replayed == {True, False}, "some pairs come after the replay"
        two.check(source, expected)


@pytest.mark.parametrize("reread", [False, pytest.param(True, marks=in_full)])
def test_a_restore_takes_both_sources_back_to_their_own_batches(
    two: TwoReadings, *, reread: bool
) -> None:
    engine = two.engine
    engine.drain()
    engine.ingest(4, "raw")
    engine.catch_up()
    saved = engine.savepoint()
    assert {name: each.n for name, each in saved.sources.items()} == {"raw": 4, "other": 1}
    engine.ingest(3, "other")
    engine.operate("late_replay", table="raw_bands", **ALL)
    engine.ingest(5, "raw")
    engine.operate("drain")
    engine.ingest(4, "other")
    engine.catch_up()
    for place, nth in (("restore.fenced", 6), ("reset.intended", 1), ("reset.table_done", 5)):
        with dying(place, nth):
            engine.restore(saved, reread=reread)
    engine.start()
    assert batch_ids(engine) == ({"raw": 4, "other": 1} if reread else {"raw": 5, "other": 3})
    if reread:
        engine.ingest(3, "other")
    finish(engine)
    two.check_ledger()
    first, second = (
        {"raw": two.upto("raw", raw), "other": two.upto("other", other)}
        for raw, other in ((3, 2), (5, 3))
    )
    for source in SOURCES:
        # Bronze that is read again has other batches: later operations have no place among them.
        replay = Replay(two.upto("raw", 4), "bands") if source == "raw" else None
        later = [None, None] if reread else [replay, Closing(second[source])]
        two.check(source, two.expected(source, [Closing(first[source]), *later]))


def publications(engine: Engine) -> list[ResetIntent]:
    return [ResetIntent.of(each) for each in engine.decisions().of(RESET)]


def test_a_rebuild_of_tables_of_both_sources_is_published_once(two: TwoReadings) -> None:
    engine = two.engine
    engine.ingest(4, "raw")
    engine.ingest(3, "other")
    engine.drain()
    wanted = RebuildRequest(("silver/raw_clean", "silver/other_strong"))
    with dying("rebuild.recorded"):
        two.again(anew=wanted)
    engine.start().ingest(5, "raw")
    with dying("rebuild.ready"):
        engine.catch_up()
    engine.start().ingest(4, "other")
    with dying("reset.intended"):
        engine.catch_up()
    with dying("reset.table_done", 3):
        engine.start()
    engine.start()
    finish(engine)
    assert engine.runtime.rebuild is None
    (intent,) = publications(engine)
    assert intent.is_publication
    assert {"gold/raw_bands", "gold/other_sliding"} <= intent.tables.keys()
    two.check_ledger()
    for source, files in (("raw", 4), ("other", 3)):
        two.check(source, two.expected(source, [Closing(two.upto(source, files))]))


def changed(pipeline: Pipeline, *changes: tuple[str, str]) -> Pipeline:
    text = pipeline.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    pipeline.file.write_text(text)
    return load(pipeline.file)


@in_full
def test_one_source_is_read_again_while_a_table_of_the_other_changes(two: TwoReadings) -> None:
    """Operations of before are void only where bronze is read again."""
    engine = two.engine
    engine.ingest(4, "raw")
    engine.drain()
    before, after = engine.pipeline.text.split("  other:\n", 1)
    text = before.replace("within: 10 minutes", "within: 20 minutes") + "  other:\n" + after
    strong = "  other_strong:\n    from: other\n    where: level >= "
    assert f"{strong}5" in text
    engine.pipeline.file.write_text(text.replace(f"{strong}5", f"{strong}7"))
    pipeline = load(engine.pipeline.file)
    with dying("rebuild.recorded"):
        two.again(pipeline, RebuildRequest(changed=True))
    two = replace(two, engine=two.again(pipeline))
    engine = two.engine
    list_all(engine)
    engine.ingest(2, "raw")
    with dying("silver.committed", 2):
        engine.catch_up()
    engine.start().ingest(3, "other")
    engine.ingest(None, "raw")
    with dying("reset.intended"):
        engine.catch_up()
    with dying("reset.table_done", 4):
        engine.start()
    engine.start()
    finish(engine)
    (intent,) = publications(engine)
    assert intent.is_publication
    assert intent.tables.keys() >= {"bronze/raw", "gold/other_sliding"}
    two.check_ledger()
    plain = rules(gold=GOLD)
    strong_rules = replace(
        plain.silver["strong"],
        where=lambda row: None if row["level"] is None else row["level"] >= 7,
    )
    used = replace(plain, silver={**plain.silver, "strong": strong_rules})
    drain = Closing(two.upto("other", 2))
    two.check("other", two.expected("other", [drain], used=used))
    wider = replace(plain, within=2 * plain.within if plain.within else None)
    two.check("raw", two.expected("raw", [None], used=wider))


@in_full
def test_a_load_into_one_source_leaves_the_batches_of_the_other_alone(
    two: TwoReadings, tmp_path: Path
) -> None:
    """Some of its ids are those of the other source."""
    engine = two.engine
    archive = Landing(tmp_path / "archive")
    archive.write_all(split([*readings(60, seed=33), *readings(150, seed=31)[:20]], 4))
    engine.drain()
    engine.begin_load(files=str(archive.folder), into="other", share=1.0)
    for place, nth in (("bronze.staged", 1), ("bronze.committed", 1), ("load.ingested", 1)):
        with dying(place, nth):
            engine.load()
        engine.start()
        if place == "bronze.committed":
            engine.ingest(4, "raw")
            engine.catch_up()
    for place in ("load.replay_intended", "operation.staged", "operation.table_done"):
        with dying(place):
            engine.load()
        engine.start()
        if place == "operation.staged":
            engine.ingest(5, "raw")
    engine.load()
    (load_,) = engine.bronze_loads("other")
    assert (load_.rows, engine.bronze_loads("raw")) == (len(archive.records()), ())
    finish(engine)
    two.check_ledger()
    replayed = [each.document["table"] for each in engine.decisions().operations[1:]]
    assert {*replayed} == {f"other_{name}" for name in GOLD}
    drains: dict[str, Happening] = {
        "raw": Closing(two.upto("raw", 3)),
        "other": Closing(at := two.upto("other", 2)),
    }
    two.check("raw", two.expected("raw", [drains["raw"], *(None for _ in replayed)]))
    folds = [Replay(at, name.removeprefix("other_"), load=1) for name in replayed]
    came = loaded(archive, at, happenings=1)
    two.check("other", two.expected("other", [drains["other"], *folds], more=came))


BAD = reading("bad", NOON, site="north", value=3, level="many")
GOOD = BAD.replace(b'"many"', b"5")


def test_a_replay_into_one_source_leaves_the_other_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Both sources have the same invalid record at the same position, and later a valid copy: a
    duplicate only where the replay was."""
    landings = {name: Landing(tmp_path / name) for name in SOURCES}
    for number, landing in enumerate(landings.values()):
        landing.write_all([lines([BAD, *readings(20, seed=40 + number)])])
        landing.write("00002.json", lines([GOOD, *readings(20, seed=50 + number)]))
    pipeline = declare_landings(tmp_path, landings)
    engine = Engine(spark, pipeline, tmp_path / "root")
    two = TwoReadings(engine, landings)
    list_all(engine)
    for source in SOURCES:
        engine.ingest(1, source)
    engine.catch_up()
    refused = RefusedRecords(engine.layout, pipeline, pipeline.sources["other"])
    found = as_refused(
        refused.rows(RefusedSelection(event_id="bad")), lambda each: each.value or b""
    )
    good = patched_records(found, "replace(value, '\"many\"', '5')")
    copies = corrected_copies(refused, good, engine.clock()).rows
    document = ReplayDocument("other", 0, 0, len(good), "a test")
    request_replay(engine.layout, "r", document, copies, engine.clock())
    for place, nth in (
        *(("control.decided", 1), ("bronze.staged", 1), ("replay.committed", 1)),
        ("silver.committed", 1),
    ):
        with dying(place, nth):
            engine.take_in()
        engine.start()
        if place == "control.decided":
            engine.ingest(2, "raw")
    engine.take_in()
    assert batch_ids(engine) == {"raw": 2, "other": 2}
    finish(engine)
    two.check_ledger()
    two.check("raw", two.expected("raw"))
    came = SourceRecord(0, two.upto("other", 1)[0] + 1, GOOD, ARRIVED)
    expected, root = two.expected("other", more=[came]), tables_of(engine.root, "other")
    assert [row["value"] for row in expected.silver["clean"] if row["_event_id"] == "bad"] == [3]
    for name in GOLD:
        assert compare(expected.gold[name], read(root, f"gold/{name}"), GOLD_KEYS[name]) == []
        pairs = ids(expected.late[name]), ids(read(root, f"late/{name}"))
        assert pairs[0] == pairs[1]
    for name, rows in expected.silver.items():
        assert ids(rows) == ids(read(root, f"silver/{name}"))


def ids(rows: list[Row]) -> list[tuple[str, Any]]:
    """The event ids, with the begin of the window of late pairs."""
    return sorted((row["_event_id"], row.get("window_start")) for row in rows)


@in_full
def test_a_backfill_of_tables_of_both_sources_is_carried_out_once(two: TwoReadings) -> None:
    engine = two.engine
    engine.ingest(4, "raw")
    engine.drain()
    saved = engine.savepoint()
    before = engine.pipeline
    used = changed(before, ("heaviest: max(weight)", "heaviest: min(weight)"))
    before.file.write_text(before.text)
    outcome = backfill(engine, used=used, tables=("raw_bands", "other_bands"))
    assert all(table.differing for table in outcome.report.tables)
    publish(engine, outcome, saved.id)
    for place in ("operation.intended", "operation.staged", "operation.table_done"):
        with dying(place):
            engine.start().take_in()
    engine.start().take_in()
    finish(engine)
    two.check_ledger()
    plain = rules(gold=GOLD)
    bands = plain.gold["bands"]
    smallest = Measure("min", lambda row: row["weight"], "double")
    measures = {**bands.measures, "heaviest": smallest}
    used_rules = replace(plain, gold={**plain.gold, "bands": replace(bands, measures=measures)})
    drains: dict[str, list[Happening | None]] = {
        "raw": [Closing(two.upto("raw", 4)), None],
        "other": [Closing(two.upto("other", 2)), None],
    }
    for source in SOURCES:
        # All windows that were final at the backfill have the rows of the new formula.
        old, new = (
            {
                row_key(row): row
                for row in two.expected(source, drains[source], used=each).gold["bands"]
            }
            for each in (plain, used_rules)
        )
        root = tables_of(engine.root, source)
        rows = {row_key(row): row for row in read(root, "gold/bands")}
        assert rows.keys() == old.keys() == new.keys()
        for key, row in rows.items():
            assert row["heaviest"] == (new if row["final"] else old)[key]["heaviest"]
    engine.restore(saved)
    finish(engine.start())
    two.check_ledger()
    for source in SOURCES:
        two.check(source, two.expected(source, drains[source]))


def row_key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in GOLD_KEYS["bands"])


@pytest.fixture
def alone(
    spark: SparkSession, tmp_path: Path, landings: dict[str, Landing]
) -> tuple[TwoReadings, Pipeline]:
    """Only ``raw`` is declared, and three of its files are in the tables; and the declaration of
    both sources."""
    pipeline = declare_landings(tmp_path / "both", landings)
    first = declare_landings(tmp_path / "alone", {"raw": landings["raw"]})
    engine = Engine(spark, first, tmp_path / "root")
    list_all(engine)
    for end in (2, 3):
        engine.ingest(end)
    engine.catch_up()
    return TwoReadings(engine, landings), pipeline


@in_full
@pytest.mark.parametrize("reread", [False, True])
def test_a_savepoint_of_before_a_source_was_added(
    alone: tuple[TwoReadings, Pipeline], *, reread: bool
) -> None:
    two, both = alone
    two.engine.drain()
    saved = two.engine.savepoint()
    two = replace(two, engine=two.again(both))
    engine = two.engine
    list_all(engine)
    engine.ingest(3, "other")
    engine.ingest(4, "raw")
    engine.operate("drain")
    engine.ingest(4, "other")
    engine.catch_up()
    for place, nth in (("reset.intended", 1), ("reset.table_done", 6)):
        with dying(place, nth):
            engine.restore(saved, reread=reread)
    finish(engine.start())
    two.check_ledger()
    first, second = (Closing(two.upto("raw", files)) for files in (3, 4))
    two.check("raw", two.expected("raw", [first, None if reread else second]))
    # Bronze of the added source stays.
    two.check("other", two.expected("other", [None, Closing(two.upto("other", 3))]))


def only_raw(two: TwoReadings, folder: Path) -> Pipeline:
    """The declaration of the pipeline without ``other``."""
    return declare_landings(folder, {"raw": two.landings["raw"]})


@in_full
@pytest.mark.parametrize("reread", [True, False])
def test_a_source_that_was_removed_and_declared_again(
    two: TwoReadings, tmp_path: Path, *, reread: bool
) -> None:
    """A restore while it is away takes its silver and gold back. Its bronze stays."""
    both = two.engine.pipeline
    saved = two.engine.savepoint()
    two.engine.ingest(3, "other")
    two.engine.drain()
    zombie = two.engine
    engine = two.again(only_raw(two, tmp_path / "alone"))
    list_all(engine)
    engine.ingest(4, "raw")
    engine.operate("late_replay", table="raw_bands", **ALL)
    with pytest.raises(FencedError):  # the driver before it still has the removed source
        zombie.ingest(4, "other")
    engine.catch_up()
    for place, nth in (("restore.fenced", 8), ("reset.table_done", 3)):
        with dying(place, nth):
            engine.restore(saved, reread=reread)
    finish(engine.start())
    two = replace(two, engine=two.again(both))
    finish(two.engine)
    two.check_ledger()
    raw: list[Happening | None] = [None, None]
    if not reread:
        raw = [Closing(two.upto("raw", 3)), Replay(two.upto("raw", 4), "bands")]
    two.check("raw", two.expected("raw", raw))
    two.check("other", two.expected("other", [Closing(two.upto("other", 3)), None]))


@in_full
def test_a_removed_source_that_was_read_again_since_a_savepoint_is_not_restored_to_it(
    two: TwoReadings, tmp_path: Path
) -> None:
    """Its silver and gold would have batches that its bronze no longer has."""
    engine, both = two.engine, two.engine.pipeline
    first = engine.savepoint()
    engine.ingest(3, "other")
    engine.catch_up()
    second = engine.savepoint()
    engine.restore(first, reread=True)
    engine.start().ingest(4, "other")
    engine.catch_up()
    engine = two.again(only_raw(two, tmp_path / "alone"))
    with pytest.raises(SavepointError, match="bronze/other"):
        engine.restore(second, reread=True)
    two = replace(two, engine=two.again(both))
    two.engine.restore(second, reread=True)
    finish(two.engine.start())
    two.check_ledger()
    for source in SOURCES:
        two.check(source, two.expected(source))
