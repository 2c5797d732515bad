"""Fields that are added inside of columns: one commit, under the fence, over the same files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from headgate.declaration.type_parser import parse_type
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from headgate.lake.tables.extending import extend, extended, extends
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.table import Table

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
ITEM = pa.struct([("a", pa.int64())])
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "about": (pa.struct([("low", ITEM)]), "struct<low: struct<a: bigint, b: int>, high: date>"),
    "items": (pa.list_(ITEM), "array<struct<a: bigint, b: array<decimal(9,2)>>>"),
    "parts": (pa.map_(pa.string(), ITEM), "map<string, struct<a: bigint, b: map<string, float>>>"),
}
SCHEMA = pa.schema([("time", TIME), *((name, old) for name, (old, _) in COLUMNS.items())])
ADDED = {name: parse_type(new) for name, (_, new) in COLUMNS.items()}
ROW: dict[str, Any] = {
    "time": NOON,
    "about": {"low": {"a": 1}},
    "items": [{"a": 2}, None],
    "parts": [("k", {"a": 3})],
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(Storage(str(tmp_path)), "silver/t", pipeline="p")
    made.create(SCHEMA, "old", time_column="time")
    made.fence(1)
    add(made, 1, ROW)
    return made


def add(table: Table, n: int, row: dict[str, Any]) -> None:
    state = table.refresh().advanced_to(n, NOON).counting({"silver": 1})
    schema = pa.schema(table.handle.schema().to_arrow())
    content = pa.Table.from_pylist([row], schema)
    table.commit(state, stage_arrow(table, state, content, time_column="time"))


def wider(table: Table) -> Schema:
    schema = extended(table.handle.schema(), ADDED)
    assert schema is not None
    return schema


def test_a_table_has_its_rows_and_its_state_and_the_new_fields(table: Table) -> None:
    before, reader = table.refresh(), table.reader()
    assert pa.schema(reader.schema.to_arrow()) == SCHEMA
    extend(table, (columns := wider(table)), "new", NOON)
    state = table.refresh()
    assert (state.kind, state.definition, state.epoch) == ("extend", "new", 1)
    assert (state.n, state.total, state.files) == (before.n, before.total, before.files)
    assert state.data_commit == before.data_commit
    for handle in (table, reader, table.reader()):
        handle.refresh()
        handle.require_intact()
        assert handle.schema == columns
    new = {**ROW, "about": {"low": {"a": 4, "b": 5}, "high": None}}
    add(table, 2, new)
    table.refresh()
    rows = pa.table(table.handle.to_pyarrow_table()).to_pylist()
    assert sorted((row["about"]["low"]["a"], row["about"]["low"]["b"]) for row in rows) == [
        (1, None),
        (4, 5),
    ]
    assert [row["items"] for row in rows] == [[{"a": 2, "b": None}, None]] * 2
    assert [row["parts"] for row in rows] == [[("k", {"a": 3, "b": None})]] * 2


def test_the_commit_names_no_file_and_is_what_the_checksum_says(table: Table) -> None:
    extend(table, wider(table), "new", NOON)
    entry = table.log.read(entry_path(table.version))
    actions = {name for line in entry.splitlines() for name in json.loads(line)}
    assert actions == {"commitInfo", "metaData", "txn"}
    configuration = table.handle.metadata().configuration
    assert configuration["delta.dataSkippingStatsColumns"] == "time"
    protocol = table.handle.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_only_the_definition_may_change(table: Table) -> None:
    shape = table.refresh().shape
    extend(table, table.handle.schema(), "new", NOON)
    assert (table.refresh().definition, table.state.shape) == ("new", shape)


def test_a_zombie_adds_nothing(table: Table) -> None:
    zombie = table.reader()
    zombie.epoch = 1
    zombie.refresh()
    stale, schema = zombie.state.held("extend", 1), wider(zombie)
    table.fence(2)
    with pytest.raises(CommitRefusedError):
        zombie.commit(stale, wider=schema)
    with pytest.raises(FencedError):
        extend(zombie, schema, "new", NOON)
    table.refresh()
    assert pa.schema(table.handle.schema().to_arrow()) == SCHEMA


OTHERS = {
    "removed": "struct<high: date>",
    "another type": "struct<low: struct<a: int>>",
    "before others": "struct<high: date, low: struct<a: bigint>>",
    "no struct": "bigint",
}


@pytest.mark.parametrize("type_", OTHERS.values(), ids=OTHERS)
def test_other_columns_cannot_be_read_from_the_same_files(table: Table, type_: str) -> None:
    assert extended(table.handle.schema(), {"about": parse_type(type_)}) is None


def test_a_new_column_is_no_field_of_one(table: Table) -> None:
    more = Schema.from_arrow(SCHEMA.append(pa.field("more", pa.int64())))
    assert not extends(more, table.handle.schema())
    assert not extends(table.handle.schema(), more)
    assert extends(more, more)
