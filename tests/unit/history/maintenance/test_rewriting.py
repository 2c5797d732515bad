"""Merging files: the same rows, the same types, under the same fence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from headgate.history.maintenance.compaction import merge_files, replace_files
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import damage_of
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import CommitRefusedError, DamagedFileError, FencedError
from headgate.lake.tables.extending import extend
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.table import Table

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(12, 2)),
        ("mean", pa.decimal128(38, 18)),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("weight", pa.float64()),
        ("level", pa.int32()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("about", pa.struct([("low", pa.struct([("min", pa.decimal128(12, 2))]))])),
    ]
)


def row(n: int) -> dict[str, Any]:
    """A row; every third one has nulls."""
    if n % 3 == 0:
        return {"id": n, "time": NOON + timedelta(minutes=n)}
    return {
        "id": n,
        "time": NOON + timedelta(minutes=n, microseconds=1),
        "price": Decimal(n) / 4,
        "mean": (Decimal(n) / 3).quantize(Decimal(1).scaleb(-18)),
        "day": date(2026, 1, 1) + timedelta(days=n),
        "ok": n % 2 == 0,
        "weight": n / 7,
        "level": n,
        "value": bytes([n, 0, 255]),
        "headers": [{"key": "k", "value": b"\x00"}, {"key": "l", "value": None}],
        "about": {"low": {"min": Decimal(n)}},
    }


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Six batches of gold, two rows each, all final."""
    made = Table(Storage(str(tmp_path)), "gold/t", pipeline="p")
    schema = SCHEMA.append(pa.field("final", pa.bool_()))
    made.create(schema, "digest", time_column="time")
    made.fence(1)
    for n in range(1, 7):
        state = made.refresh().advanced_to(n, NOON + timedelta(minutes=n)).counting({"final": 2})
        content = pa.Table.from_pylist([row(2 * n), row(2 * n + 1)], SCHEMA)
        (file,) = stage_arrow(made, state, content, time_column="time")
        made.commit(state, (replace(file, partition={"final": "true"}),))
    return made


def live(table: Table) -> tuple[DataFile, ...]:
    table.refresh()
    files = sorted(live_files(table.handle), key=lambda f: f.n)
    return with_footers(table, table.version, files)


def merged(table: Table) -> DataFile:
    return at_once(table, live(table))


def at_once(table: Table, files: Sequence[DataFile]) -> DataFile:
    steps = merge_files(table, table.refresh(), files)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            file: DataFile = end.value
            return file


def content(table: Table) -> list[dict[str, Any]]:
    table.refresh()
    found = pa.table(table.handle.to_pyarrow_table()).to_pylist()
    return sorted(found, key=lambda r: r["id"])


def test_the_table_is_the_same_before_and_after(table: Table) -> None:
    before, position = content(table), table.refresh()
    files = live(table)
    assert replace_files(table, files, merged(table), NOON + timedelta(hours=1))
    assert content(table) == before
    state = table.refresh()
    assert (state.kind, state.n, state.total) == ("maintenance", 6, position.total)
    assert (state.data_commit, state.at) == (position.data_commit, 1777899600000000)
    (file,) = live(table)
    assert (file.n, file.merged_from, file.rows, file.is_final) == (6, 1, 12, True)
    table.require_intact()
    fresh = table.reader()
    fresh.refresh()
    fresh.require_intact()


def test_a_reader_of_changes_sees_none_in_it(table: Table) -> None:
    """Spark streams a table from its commits, and has these rows already."""
    files = live(table)
    assert replace_files(table, files, merged(table), NOON)
    table.refresh()
    entry = table.log.read(entry_path(table.version))
    actions = [action for line in entry.splitlines() for action in json.loads(line).items()]
    moved = [said["dataChange"] for what, said in actions if what in ("add", "remove")]
    assert moved == [False] * (len(files) + 1)


def test_bounds_and_checksums_are_those_of_all_its_rows(table: Table) -> None:
    files = live(table)
    replace_files(table, files, merged(table), NOON)
    (file,) = live(table)
    assert '"minValues": {"time": "2026-05-04T12:02:00.000001Z"}' in file.stats
    assert '"maxValues": {"time": "2026-05-04T12:13:00.000001Z"}' in file.stats
    assert file.footer is not None
    assert damage_of(table.storage, file) is None
    path = Path(table.storage.uri(file.path))
    harmed = bytearray(path.read_bytes())
    harmed[100] ^= 1
    path.write_bytes(harmed)
    assert damage_of(table.storage, file) is not None


def test_spark_and_arrow_would_have_written_the_same_physical_types(table: Table) -> None:
    file = merged(table)
    schema = pq.ParquetFile(table.storage.uri(file.path)).schema
    physical = {schema.column(i).path: schema.column(i).physical_type for i in range(len(schema))}
    assert physical["price"] == physical["time"] == "INT64"
    assert physical["mean"] == "FIXED_LEN_BYTE_ARRAY"
    assert physical["headers.list.element.key"] == "BYTE_ARRAY"
    assert physical["about.low.min"] == "INT64"


def test_a_row_group_is_what_memory_has_to_hold(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.history.maintenance.compaction._ROW_GROUP", 1)
    before, files = content(table), live(table)
    file = merged(table)
    assert pq.ParquetFile(table.storage.uri(file.path)).num_row_groups == 6
    assert replace_files(table, files, file, NOON)
    assert content(table) == before


def test_batches_that_came_meanwhile_do_not_matter(table: Table) -> None:
    files, file = live(table), merged(table)
    state = table.refresh().advanced_to(7, NOON).counting({"final": 1})
    (new,) = stage_arrow(table, state, pa.Table.from_pylist([row(99)], SCHEMA), time_column="time")
    table.commit(state, (replace(new, partition={"final": "true"}),))
    before = content(table)
    assert replace_files(table, files, file, NOON)
    assert content(table) == before
    assert table.refresh().n == 7


def test_a_file_that_went_meanwhile_stops_it(table: Table) -> None:
    files, file = live(table), merged(table)
    held = table.refresh().held("operation", 1)
    table.commit(replace(held, total={"final": 10}), (), [files[2]])
    before = content(table)
    assert not replace_files(table, files, file, NOON)
    assert content(table) == before


def test_a_zombie_merges_nothing(table: Table, tmp_path: Path) -> None:
    zombie = Table(Storage(str(tmp_path)), "gold/t", pipeline="p")
    zombie.epoch = 1
    files, file = live(zombie), merged(zombie)
    stale = zombie.refresh().held("maintenance", 1)
    table.fence(2)
    before = content(table)
    with pytest.raises(CommitRefusedError):
        zombie.commit(stale, (file,), files)
    with pytest.raises(FencedError):
        replace_files(zombie, files, file, NOON)
    assert content(table) == before


@pytest.mark.parametrize("place", [60, -20, 4])
def test_damage_is_never_written_anew(table: Table, place: int) -> None:
    """The damage is in a page, in the footer, or in the first bytes."""
    files = live(table)
    path = Path(table.storage.uri(files[3].path))
    harmed = bytearray(path.read_bytes())
    harmed[place] ^= 0x10
    path.write_bytes(harmed)
    with pytest.raises(DamagedFileError):
        at_once(table, files)


def test_a_column_of_another_name_is_damage_where_no_checksum_tells(table: Table) -> None:
    """If the log has lost a file's commit, the checksum of the file's footer is unknown."""
    files = live(table)
    path = Path(table.storage.uri(files[3].path))
    read = pq.read_table(path)
    for names in ({"price": "qrice"}, {"about": "abut"}):
        renamed = read.rename_columns([names.get(n, n) for n in read.column_names])
        pq.write_table(renamed, path)
        unknown = [replace(f, footer=None, size=path.stat().st_size) for f in files[3:4]]
        with pytest.raises(DamagedFileError, match="other columns"):
            at_once(table, [files[0], *unknown])


def test_a_nested_field_of_another_name_is_damage_too(table: Table) -> None:
    files = live(table)
    path = Path(table.storage.uri(files[3].path))
    read = pq.read_table(path)
    other = pa.struct([("low", pa.struct([("mix", pa.decimal128(12, 2))]))])
    renamed = read.column("about").combine_chunks().view(other)
    place = read.column_names.index("about")
    pq.write_table(read.set_column(place, "about", renamed), path)
    unknown = replace(files[3], footer=None, size=path.stat().st_size)
    with pytest.raises(DamagedFileError, match="other columns"):
        at_once(table, [files[0], unknown])


def test_states_are_left_behind(table: Table) -> None:
    """A file of final rows has no states, or nulls if it was written beside open rows."""
    before, files = content(table), live(table)
    path = Path(table.storage.uri(files[3].path))
    read = pq.read_table(path)
    states = pa.nulls(len(read), pa.struct([("low", pa.int64())]))
    pq.write_table(read.append_column("_state", states), path)
    unknown = replace(files[3], footer=None, size=path.stat().st_size)
    file = at_once(table, [*files[:3], unknown, *files[4:]])
    assert pq.ParquetFile(table.storage.uri(file.path)).schema_arrow.names == SCHEMA.names
    assert replace_files(table, files, file, NOON)
    assert content(table) == before


def test_a_row_that_is_lost_stops_it(table: Table) -> None:
    files = live(table)
    path = Path(table.storage.uri(files[3].path))
    pq.write_table(pq.read_table(path).slice(1), path)
    unknown = replace(files[3], footer=None, size=path.stat().st_size)
    with pytest.raises(DamagedFileError, match="would become 3 rows"):
        at_once(table, [files[0], unknown])


def test_files_from_before_fields_were_added_are_merged_with_others(table: Table) -> None:
    low = pa.struct([("min", pa.decimal128(12, 2)), ("max", pa.decimal128(12, 2))])
    about = pa.field("about", pa.struct([("low", low)]))
    schema = SCHEMA.set(SCHEMA.get_field_index("about"), about)
    wide = schema.append(pa.field("final", pa.bool_()))
    table.refresh()
    extend(table, Schema.from_arrow(wide), "digest", NOON)
    state = table.refresh().advanced_to(7, NOON).counting({"final": 1})
    new = row(16) | {"about": {"low": {"min": Decimal(1), "max": Decimal(2)}}}
    (added,) = stage_arrow(table, state, pa.Table.from_pylist([new], schema), time_column="time")
    table.commit(state, (replace(added, partition={"final": "true"}),))
    before = content(table)
    assert replace_files(table, live(table), merged(table), NOON)
    assert content(table) == before
    assert {r["about"]["low"]["max"] for r in before if r["about"]} == {None, Decimal(2)}
