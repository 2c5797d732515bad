"""Tables that go back: to a version, to nothing, with a crash in between, beside a zombie
driver."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema

from headgate.history.savepoints.resets import Resets, ResetTarget, reset_intents
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import CommitRefusedError, FencedError, LogGapError
from headgate.lake.tables.extending import extend
from headgate.lake.tables.history import batches, lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support.decisions import control_of, reset_to, resets_of
from tests.support.failing import dying

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("time", pa.timestamp("us", "UTC"))])


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Table]:
    """Bronze and silver, five batches each: a file per batch."""
    found = {}
    for path in ("bronze/b", "silver/s"):
        table = Table(Storage(str(tmp_path)), path, pipeline="p")
        table.create(SCHEMA, "digest", time_column="time")
        table.fence(1)
        for n in range(1, 6):
            process(table, n)
        found[path] = table
    return found


@pytest.fixture
def control(tmp_path: Path) -> ControlTable:
    return control_of(Storage(str(tmp_path)), "p", epoch=1)


@pytest.fixture
def resets(control: ControlTable, tmp_path: Path) -> Resets:
    """As a running job reads them."""
    return resets_of(Storage(str(tmp_path)), "p")


COUNTED = {"bronze/b": "read", "silver/s": "silver"}


def process(table: Table, n: int, name: str = "") -> State:
    held = table.refresh()
    state = held.advanced_to(n, NOON).counting({COUNTED[table.name]: 1})
    return table.commit(state, (file(f"data/{held.generation}-{n}-{name or n}.parquet"),))


def file(path: str) -> DataFile:
    return DataFile(path, 1, 1, '{"numRecords": 1}', {})


def paths(table: Table) -> set[str]:
    table.refresh()
    return {f.path for f in live_files(table.handle)}


def version_of(table: Table, n: int) -> ResetTarget:
    """The commit that reached batch ``n``, as a savepoint would have noted it."""
    commit = next(c for c in lineage(table) if c.state.n == n and c.state.kind == "data")
    return ResetTarget(commit.version, commit.state.files)


def test_a_table_goes_back_and_on(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    bronze, silver = tables.values()
    target = version_of(silver, 2)
    intent = reset_to(control, {silver.name: target}, NOON, savepoint="s1")
    assert resets.after(0)[-1] == intent
    assert resets.awaits(silver)
    assert not resets.awaits(bronze)
    resets.carry_out([silver], NOON)
    assert not resets.awaits(silver)
    state = silver.refresh()
    assert (state.n, state.generation, state.kind, state.total) == (2, 1, "reset", {"silver": 2})
    assert paths(silver) == {"data/0-1-1.parquet", "data/0-2-2.parquet"}
    assert state.files == target.files
    assert bronze.refresh().n == 5
    for n in (3, 4, 5):
        process(silver, n)
    assert [f.path for b in batches(silver, 1, 4) for f in b.files] == [
        "data/0-2-2.parquet",
        "data/1-3-3.parquet",
        "data/1-4-4.parquet",
    ]
    assert [c.state.n for c in lineage(silver)] == [5, 4, 3, 2, 2, 1, 0, 0]


def test_a_generation_is_above_any_whose_decision_is_lost(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    """Silver carried out the reset of generation 4, but the decision on it is lost."""
    silver = tables["silver/s"]
    reset_to(control, {silver.name: version_of(silver, 2)}, NOON, above=4)
    assert resets.generation == control.refresh().generation == 5
    resets.carry_out([silver], NOON)
    assert silver.refresh().generation == 5


def test_carrying_out_again_does_nothing(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    bronze, silver = tables.values()
    reset_to(control, {silver.name: version_of(silver, 2)}, NOON)
    for _ in range(2):
        resets.carry_out([silver, bronze], NOON)
    process(silver, 3)
    resets.carry_out([silver], NOON)
    assert (silver.refresh().n, bronze.refresh().generation) == (3, 0)


def test_a_rebuild_takes_the_place_of_a_table_in_one_commit(
    tables: dict[str, Table], control: ControlTable, resets: Resets, tmp_path: Path
) -> None:
    """The rebuild has another schema. A later reset goes back to before it."""
    silver = tables["silver/s"]
    before, log = version_of(silver, 5), "_headgate/rebuild/7/silver/s"
    rebuilt = Table(Storage(str(tmp_path)), "silver/s", pipeline="p", log=log)
    schema = pa.schema([("other", pa.string())])
    rebuilt.create(schema, "new", time_column="other", generation=1)
    for n in (2, 4, 5):
        process(rebuilt, n)
    assert (silver.refresh().definition, len(paths(silver))) == ("digest", 5)
    newest = version_of(rebuilt, 4)
    target = replace(newest, rebuilt=log)
    assert reset_to(control, {silver.name: target}, NOON).is_publication
    resets.carry_out([silver], NOON)
    state = silver.refresh()
    found = state.n, state.definition, state.total, state.generation
    assert found == (4, "new", {"silver": 2}, 1)
    assert state.data_commit == silver.version
    assert paths(silver) == {"data/1-2-2.parquet", "data/1-4-4.parquet"}
    assert [f.name for f in silver.handle.schema().fields] == ["other"]
    silver.require_intact()
    process(silver, 5)
    assert [sorted(f.path for f in b.files) for b in batches(silver, 0, 5)] == [
        ["data/1-2-2.parquet", "data/1-4-4.parquet"],
        ["data/1-5-5.parquet"],
    ]
    assert not reset_to(control, {silver.name: before}, NOON).is_publication
    resets.carry_out([silver], NOON)
    assert silver.refresh().definition == "digest"
    assert [f.name for f in silver.handle.schema().fields] == ["id", "time"]
    assert len(paths(silver)) == 5
    silver.require_intact()


def test_bronze_goes_back_in_a_commit_of_its_own(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    bronze, silver = tables.values()
    targets = {silver.name: version_of(silver, 2), bronze.name: version_of(bronze, 3)}
    version = bronze.version
    reset_to(control, targets, NOON)
    assert bronze.refresh().n == 5
    assert resets.awaits(bronze)
    resets.carry_out([bronze], NOON)
    assert (bronze.refresh().n, bronze.version, len(paths(bronze))) == (3, version + 1, 3)
    process(bronze, 4, "again")
    assert [b.files[0].path for b in batches(bronze, 2, 4)] == [
        "data/0-3-3.parquet",
        "data/1-4-again.parquet",
    ]
    assert resets.awaits(silver), "a reset waits for each of its tables"


def test_bronze_goes_back_first(tables: dict[str, Table], control: ControlTable) -> None:
    """Otherwise a crash would leave silver behind batches of bronze that are to be removed."""
    bronze, silver = tables.values()
    reset_to(control, {path: version_of(table, 2) for path, table in tables.items()}, NOON)
    with dying("reset.table_done"):
        Resets(control).carry_out([silver, bronze], NOON)
    assert (bronze.refresh().n, silver.refresh().n) == (2, 5)


def test_the_newest_reset_that_names_a_table_counts(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    """A restore with bronze died after its decision; a restore without bronze followed."""
    bronze, silver = tables.values()
    first = {path: version_of(table, 2) for path, table in tables.items()}
    reset_to(control, first, NOON)
    reset_to(control, {silver.name: version_of(silver, 3)}, NOON)
    assert [resets.awaits(table) for table in (bronze, silver)] == [True, True]
    found = reset_intents(control.refresh())
    assert {path: intent.generation for path, intent in found.items()} == {
        bronze.name: 1,
        silver.name: 2,
    }
    resets.carry_out([silver, bronze], NOON)
    assert [(t.refresh().n, t.state.generation) for t in (bronze, silver)] == [(2, 1), (3, 2)]
    assert not any(map(resets.awaits, (bronze, silver)))


def test_two_resets_keep_to_their_own_past(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    """Batch 4 was committed twice; each past has its own."""
    silver = tables["silver/s"]
    at_two, at_five = version_of(silver, 2), version_of(silver, 5)
    reset_to(control, {silver.name: at_two}, NOON)
    resets.carry_out([silver], NOON)
    process(silver, 3, "second")
    process(silver, 4, "second")
    reset_to(control, {silver.name: at_five}, NOON)
    resets.carry_out([silver], NOON)
    assert [b.files[0].path for b in batches(silver, 2, 5)] == [
        f"data/0-{n}-{n}.parquet" for n in (3, 4, 5)
    ]


def test_a_version_that_is_not_what_it_was_is_refused(
    tables: dict[str, Table], control: ControlTable, resets: Resets
) -> None:
    silver = tables["silver/s"]
    wrong = replace(version_of(silver, 2), files="0" * 31 + "1")
    reset_to(control, {silver.name: wrong}, NOON)
    with pytest.raises(LogGapError, match="no longer lists the files it recorded"):
        resets.carry_out([silver], NOON)
    assert silver.refresh().n == 5


def test_a_zombie_gets_nothing_in(
    tables: dict[str, Table], control: ControlTable, resets: Resets, tmp_path: Path
) -> None:
    silver = tables["silver/s"]
    zombie = Table(Storage(str(tmp_path)), "silver/s", pipeline="p")
    zombie.epoch = 1
    stale = zombie.refresh().advanced_to(6, NOON).counting({"silver": 1})
    for table in (control.table, silver):
        table.fence(2)
    reset_to(control, {silver.name: version_of(silver, 2)}, NOON)
    with pytest.raises(CommitRefusedError):
        zombie.commit(stale, (file("data/0-6-zombie.parquet"),))
    resets.carry_out([silver], NOON)
    with pytest.raises(CommitRefusedError):
        zombie.commit(stale, (file("data/0-6-zombie.parquet"),))
    with pytest.raises(FencedError):
        zombie.refresh()
    assert paths(silver) == {"data/0-1-1.parquet", "data/0-2-2.parquet"}


WIDE = pa.schema([*SCHEMA, ("about", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
NARROW = WIDE.set(2, pa.field("about", pa.struct([("a", pa.int64())])))


def columns(table: Table) -> pa.Schema:
    table.refresh()
    table.require_intact()
    return pa.schema(table.handle.schema().to_arrow())


@pytest.mark.parametrize("path", ["bronze/b", "silver/s"])
def test_added_fields_stay_where_files_stay(
    control: ControlTable, resets: Resets, tmp_path: Path, path: str
) -> None:
    """A table goes back to before fields were added inside a column, back to before it was built
    anew, and forward to after the fields were added."""
    table = Table(Storage(str(tmp_path)), path, pipeline="p")
    table.create(NARROW, "narrow", time_column="time")
    process(table, 1)
    narrow = version_of(table, 1)
    extend(table, Schema.from_arrow(WIDE), "wide", NOON)
    process(table, 2)
    wide = version_of(table, 2)

    def go(target: ResetTarget) -> State:
        reset_to(control, {path: target}, NOON)
        resets.carry_out([table], NOON)
        return table.refresh()

    assert (go(narrow).definition, paths(table)) == ("narrow", {"data/0-1-1.parquet"})
    assert columns(table) == WIDE
    log = f"_headgate/rebuild/7/{path}"
    rebuilt = Table(Storage(str(tmp_path)), path, pipeline="p", log=log)
    rebuilt.create(SCHEMA, "new", time_column="time", generation=2)
    process(rebuilt, 2, "rebuilt")
    go(replace(version_of(rebuilt, 2), rebuilt=log))
    assert columns(table) == SCHEMA
    assert go(narrow).definition == "narrow"
    assert columns(table) == NARROW
    assert (go(wide).definition, paths(table)) == (
        "wide",
        {"data/0-1-1.parquet", "data/0-2-2.parquet"},
    )
    assert columns(table) == WIDE
