"""Which files of a table a batch looks at: those of a partition, those that may hold a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction
from hypothesis import given
from hypothesis import strategies as st

from headgate.lake.storage.files import Storage
from headgate.lake.tables import live_files as module
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.live_files import (
    latest_time,
    live_files,
    overlapping_files,
    partition_files,
)
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import SCHEMA, TIME, Open, file, next_batch

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def span(first: float, last: float) -> tuple[int, int]:
    return MICROS + int(first * 1e6), MICROS + int(last * 1e6)


def names(files: tuple[DataFile, ...]) -> set[str]:
    return {f.path.removeprefix("data/").removesuffix(".parquet") for f in files}


def test_files_of_a_partition_are_those_of_all_files_that_say_so(open_table: Open) -> None:
    table = open_table()
    table.fence(1)
    assert partition_files(table.handle, "final", False) == ()
    gone = file("gone")
    next_batch(table, gone, file("done", (at(0), at(1)), final=True))
    next_batch(table, file("open with space", (at(0), at(9))), file("done2", final=True))
    next_batch(table, file("open"), remove=(gone,))
    table.refresh()
    found = partition_files(table.handle, "final", False)
    assert names(found) == {"open with space", "open"}
    assert found == tuple(f for f in live_files(table.handle) if f.partition["final"] == "false")


def test_bounds_of_any_year_are_read_as_they_were_written(open_table: Open) -> None:
    table = open_table()
    table.fence(1)
    ends = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC))
    written = [file("all", ends), file("old", (ends[0], ends[0] + timedelta(microseconds=1)))]
    next_batch(table, *written)
    table.refresh()
    assert sorted(live_files(table.handle), key=lambda f: f.path) == written
    table.require_intact()


def test_a_file_is_left_out_only_if_its_bounds_say_so(open_table: Open) -> None:
    table = open_table()
    table.fence(1)
    assert overlapping_files(table.handle, TIME, [span(0, 1)]) == ()
    assert overlapping_files(table.handle, TIME, []) == ()
    next_batch(table, file("unbounded"))
    table.refresh()
    assert names(overlapping_files(table.handle, TIME, [span(0, 1)])) == {"unbounded"}
    next_batch(table, file("10 to 20", (at(10), at(20))), file("wide", (at(0), at(100))))
    next_batch(table, file("instant", (at(30.5), at(30.5))))
    table.refresh()
    for spans, expected in (
        ([span(0, 9.9)], {"wide"}),
        ([span(0, 10)], {"wide", "10 to 20"}),
        ([span(20, 25)], {"wide", "10 to 20"}),
        ([span(12, 13)], {"wide", "10 to 20"}),
        ([span(20.0005, 25)], {"wide", "10 to 20"}),  # a bound may be truncated to milliseconds
        ([span(20.1, 30), span(31, 40)], {"wide"}),
        ([span(-9, -5), span(5, 6), span(30, 31), span(400, 401)], {"wide", "instant"}),
        ([span(-9, -5), span(101, 200)], set()),
    ):
        found = names(overlapping_files(table.handle, TIME, spans))
        assert found == expected | {"unbounded"}, spans


SECONDS = st.integers(0, 40)


@given(
    st.lists(st.tuples(SECONDS, SECONDS).map(sorted), max_size=6),
    st.sets(SECONDS, min_size=1).map(sorted),
)
def test_every_file_with_a_wanted_time_is_found(bounds: list[list[int]], wanted: list[int]) -> None:
    """Compared with a plain form of the rule. The add actions are given in the form of delta-rs,
    because a table for each of a thousand examples would be slow."""
    times = pa.timestamp("us", "UTC")
    low, high = (
        pa.StructArray.from_arrays([pa.array([at(b[i]) for b in bounds], times)], [TIME])
        for i in (0, 1)
    )
    count = len(bounds)
    actions = pa.table(
        {
            "path": [str(i) for i in range(count)],
            "size_bytes": pa.array([1] * count, pa.int64()),
            "num_records": pa.array([1] * count, pa.int64()),
            "min": low,
            "max": high,
        }
    )

    class Handle:
        def get_add_actions(self, *, flatten: bool) -> pa.Table:
            return actions

    spans = [span(s, s + 0.9) for s in wanted]
    found = {f.path for f in overlapping_files(Handle(), TIME, spans)}  # type: ignore[arg-type]
    assert found == {str(i) for i, (a, b) in enumerate(bounds) if any(a <= s <= b for s in wanted)}


def test_of_a_long_table_only_what_is_wanted_becomes_an_object(
    open_table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table()
    table.fence(1)
    done = (file(str(i), (at(i), at(i + 0.5)), final=True) for i in range(5_000))
    next_batch(table, *done, file("open", (at(5_000), at(5_001))))
    table.refresh()
    made = []
    monkeypatch.setattr(module, "DataFile", lambda **kept: made.append(kept["path"]))
    partition_files(table.handle, "final", False)
    overlapping_files(table.handle, TIME, [span(4_000.2, 4_001.2)])
    assert made == ["data/open.parquet", "data/4000.parquet", "data/4001.parquet"]


@pytest.mark.parametrize("comes_first", [False, True])
def test_bounds_are_read_unless_a_struct_comes_first(tmp_path: Path, *, comes_first: bool) -> None:
    """Therefore structs are the last columns of silver. Once this test fails, they need not be."""
    parts = ("parts", pa.struct([("n", pa.int32())]))
    lists = ("lists", pa.list_(parts[1]))
    schema = pa.schema([lists, parts, *SCHEMA] if comes_first else [lists, *SCHEMA, parts])
    table = Table(Storage(str(tmp_path)), "gold/t", pipeline="p")
    table.create(schema, "digest", time_column=TIME)
    table.fence(1)
    next_batch(table, file("all", (at(0), at(1))))
    table.refresh()
    (found,) = live_files(table.handle)
    assert (found == file("all", (at(0), at(1)))) == (not comes_first)


def test_a_file_without_bounds_may_have_the_latest_time(open_table: Open) -> None:
    """A file whose rows all have no time has no bounds, as has one with times before the year 1."""
    table = open_table()
    table.fence(1)
    table.refresh()
    assert latest_time(table.handle, TIME) is None
    next_batch(table, file("bounded", (at(0), at(60))))
    table.refresh()
    assert span(60, 60)[1] <= (latest_time(table.handle, TIME) or 0) < span(61, 61)[1]
    next_batch(table, file("unbounded"))
    table.refresh()
    assert (latest_time(table.handle, TIME) or 0) > span(0, 1e9)[1]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_without_statistics_has_the_rows_of_its_footer(
    tmp_path: Path, is_there: bool
) -> None:
    """A commit that removes it must know its rows, or it is refused for other counts."""
    rows = pa.table({"x": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "a b.parquet")
    handle = DeltaTable.create(tmp_path, Schema.from_arrow(rows.schema))
    size = (tmp_path / "a b.parquet").stat().st_size
    add = AddAction("a b.parquet", size, {}, 0, True, "{}")
    handle.create_write_transaction([add], "append", handle.schema())
    handle.update_incremental()
    if not is_there:
        (tmp_path / "a b.parquet").unlink()
    (file,) = live_files(handle)
    assert (file.path, file.rows) == ("a b.parquet", 3 if is_there else 0)
