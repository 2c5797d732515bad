"""Reading batches back where maintenance has merged files and trimmed the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile, merged_name
from headgate.lake.tables.errors import CommitRefusedError, FencedError, LogGapError
from headgate.lake.tables.history import batches, commit_at, lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import entry_path, list_log, newest_commit
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.state import SourceWatermarks
from headgate.lake.tables.table import Table
from tests.support.rounds import IN_FULL

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("time", pa.timestamp("us", "UTC"))])


def make(folder: Path, upto: int = 10) -> Table:
    """A table with one file per batch. Version 1 is a fence, version v + 1 is batch v."""
    table = Table(Storage(str(folder)), "silver/s", pipeline="p")
    table.create(SCHEMA, "digest", time_column="time")
    table.fence(1)
    for n in range(1, upto + 1):
        process(table, n)
    return table


def process(table: Table, n: int) -> None:
    state = table.refresh().advanced_to(n, NOON, SilverPayload(n * 1000))
    table.commit(state, (written(table, f"data/0-{n}-abc/part-0.parquet"),))


def written(table: Table, path: str) -> DataFile:
    table.storage.write(path, b"rows")
    return DataFile(path, 4, 1, '{"numRecords": 1}', {})


def merge(table: Table, lowest: int, highest: int) -> None:
    """Commit like compaction: the files of some batches become one."""
    held = table.refresh()
    gone = [f for f in live(table) if lowest <= f.n <= highest]
    merged = written(table, f"data/0-{highest}-merged/{merged_name(lowest)}")
    rows = sum(f.rows for f in gone)
    merged = replace(merged, rows=rows, stats=json.dumps({"numRecords": rows}))
    table.commit(held.held("maintenance", table.epoch), (merged,), gone)


def live(table: Table) -> Sequence[DataFile]:
    table.refresh()
    return live_files(table.handle)


def forget_files(table: Table, highest: int) -> None:
    """Delete like vacuum: files that are not live, up to a batch."""
    needed = {f.path for f in live(table)}
    for stat in table.storage.list("data", recursive=True):
        file = DataFile(stat.path, 4, 1, "", {})
        if file.n <= highest and stat.path not in needed:
            table.storage.remove(stat.path)


def trim(table: Table, version: int) -> None:
    """Write a checkpoint at ``version`` and delete all files of the log below it."""
    DeltaTable(table.storage.uri(), version=version).create_checkpoint()
    for at, path in list_log(table.storage).paths:
        if at < version:
            table.storage.remove(path)


def seen(table: Table, after: int, upto: int) -> list[tuple[int, int, list[str]]]:
    return [
        (c.state.from_n, c.state.n, [f.path for f in c.files]) for c in batches(table, after, upto)
    ]


def plain(*numbers: int) -> list[tuple[int, int, list[str]]]:
    return [(n - 1, n, [f"data/0-{n}-abc/part-0.parquet"]) for n in numbers]


MERGED = "data/0-6-merged/merged-1.parquet"


def test_merged_files_that_are_there_still_are_read_as_they_were(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge(table, 1, 6)
    assert seen(table, 0, 10) == plain(*range(1, 11))
    assert seen(table, 3, 5) == plain(4, 5)


def test_what_is_gone_is_read_from_what_it_was_merged_into(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge(table, 1, 6)
    forget_files(table, 6)
    (first, *later) = batches(table, 0, 10)
    assert (first.state.from_n, first.state.n, first.state.payload) == (0, 6, SilverPayload(6000))
    assert [f.path for f in first.files] == [MERGED]
    assert [c.state.n for c in later] == [7, 8, 9, 10]
    assert seen(table, 6, 8) == plain(7, 8)


def test_a_batch_that_was_merged_across_cannot_be_read_alone(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge(table, 1, 6)
    forget_files(table, 6)
    for after, upto in ((3, 10), (0, 3), (2, 4)):
        with pytest.raises(LogGapError, match="are not in the table's log"):
            batches(table, after, upto)


def test_a_trimmed_log_begins_with_what_is_live(tmp_path: Path) -> None:
    table = make(tmp_path)
    trim(table, 6)  # batch 5
    assert [c.state.n for c in lineage(table)] == [10, 9, 8, 7, 6, 5]
    (first, *later) = batches(table, 0, 10)
    assert (first.state.from_n, first.state.n, first.state.payload) == (0, 5, SilverPayload(5000))
    assert sorted(f.n for f in first.files) == [1, 2, 3, 4, 5]
    assert [c.state.n for c in later] == [6, 7, 8, 9, 10]
    assert seen(table, 5, 7) == plain(6, 7)
    # No file spans batch 3, so reading can begin and end there.
    assert [c.state.n for c in batches(table, 3, 10)] == [5, 6, 7, 8, 9, 10]
    (ends,) = batches(table, 0, 3)
    assert (sorted(f.n for f in ends.files), ends.state.payload) == ([1, 2, 3], SilverPayload())
    known = {3: SourceWatermarks(2900, 2950), 4: SourceWatermarks()}
    (ends,) = batches(table, 0, 3, known)
    told = SilverPayload(2900, arrival_watermark=2950)
    assert ends.state.payload == told, "an operation after batch 3 knows it"
    (ends,) = batches(table, 0, 4, known)
    assert ends.state.payload == SilverPayload()


def test_an_operation_is_a_place_to_stop_in_merged_and_trimmed_batches(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge(table, 1, 3)
    merge(table, 4, 8)
    forget_files(table, 8)
    trim(table, 10)  # batch 9
    (first,) = batches(table, 0, 3)
    (second, *later) = batches(table, 3, 10)
    assert [f.path for f in first.files] == ["data/0-3-merged/merged-1.parquet"]
    assert [second.state.n, *(c.state.n for c in later)] == [9, 10]
    assert sorted(f.path for f in second.files) == [
        "data/0-8-merged/merged-4.parquet",
        "data/0-9-abc/part-0.parquet",
    ]


def test_a_position_is_the_newest_commit_at_its_batch(tmp_path: Path) -> None:
    table = make(tmp_path, 4)
    merge(table, 1, 2)
    found = [commit_at(table, n) for n in (0, 3, 4, 5)]
    assert [(c.version, c.state.n) for c in found] == [(1, 0), (4, 3), (6, 4), (6, 4)]
    assert commit_at(table, 4, 5).version == 5
    trim(table, 4)
    with pytest.raises(LogGapError, match="does not reach back to batch 2"):
        commit_at(table, 2)


def test_batches_that_the_log_never_had_are_missing(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    with pytest.raises(LogGapError, match="batches 4 to 4 are not"):
        batches(table, 0, 4)
    assert batches(table, 3, 3) == ()
    state = replace(table.refresh().advanced_to(6, NOON), from_n=4)
    table.commit(state, (written(table, "data/0-6-abc/part-0.parquet"),))
    with pytest.raises(LogGapError, match="batches 4 to 4 are not"):
        batches(table, 0, 6)
    assert [c.state.n for c in lineage(table)] == [6, 3, 2, 1, 0, 0]


def test_an_entry_that_is_missing_in_the_middle_is_damage(tmp_path: Path) -> None:
    table = make(tmp_path)
    trim(table, 4)
    newest = table.version
    table.storage.remove(entry_path(7))
    with pytest.raises(LogGapError, match="it is missing"):
        tuple(lineage(table, newest))


def test_an_entry_that_is_missing_without_a_checkpoint_is_damage(tmp_path: Path) -> None:
    table = make(tmp_path)
    newest = table.version
    table.storage.remove(entry_path(0))
    with pytest.raises(LogGapError, match="it is missing"):
        tuple(lineage(table, newest))


@pytest.mark.slow
@settings(max_examples=400 if IN_FULL else 15)
@given(st.data())
def test_every_row_is_read_once_whatever_was_merged_and_trimmed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Each batch is read once, from any position that compaction respected to the end."""
    table = make(tmp_path_factory.mktemp("table"), 8)
    cuts = sorted(data.draw(st.sets(st.integers(1, 7), max_size=2)))
    ends = [0, *cuts, 8]
    held: dict[str, set[int]] = {f"data/0-{n}-abc/part-0.parquet": {n} for n in range(1, 9)}
    for low, high in pairwise(ends):
        if high - low > 1 and data.draw(st.booleans()):
            first, last = low + 1, data.draw(st.integers(low + 2, high))
            merge(table, first, last)
            path = f"data/0-{last}-merged/{merged_name(first)}"
            held[path] = set(range(first, last + 1))
    if data.draw(st.booleans()):
        forget_files(table, data.draw(st.integers(0, 8)))
    if data.draw(st.booleans()):
        trim(table, data.draw(st.integers(1, table.version)))
    for after in (0, *cuts):
        found = batches(table, after, 8)
        rows = [n for c in found for f in c.files for n in held[f.path]]
        assert sorted(rows) == list(range(after + 1, 9))
        assert all(table.storage.exists(f.path) for c in found for f in c.files)


def left_behind(folder: Path, epoch: int) -> Table:
    table = Table(Storage(str(folder)), "silver/s", pipeline="p")
    table.epoch = epoch
    table.refresh()
    return table


def test_a_trimmed_log_has_no_room_for_a_zombie(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    zombie = left_behind(tmp_path, 1)
    stale = zombie.refresh().advanced_to(4, NOON)
    table.fence(2)
    for n in range(4, 9):
        process(table, n)
    trim(table, 9)
    before = list_log(table.storage)
    with pytest.raises(CommitRefusedError):
        zombie.commit(stale, (written(zombie, "data/0-4-zombie/part-0.parquet"),))
    assert list_log(table.storage) == before
    with pytest.raises(FencedError):
        zombie.refresh()


def test_a_commit_that_comes_behind_a_checkpoint_is_refused_however_it_got_in(
    tmp_path: Path,
) -> None:
    """For example, the process was frozen after delta-rs read the log and before it wrote."""
    table = make(tmp_path, 3)
    state = table.refresh().advanced_to(4, NOON)
    note = {"version": table.version + 2, "size": 1}
    table.storage.write("_delta_log/_last_checkpoint", json.dumps(note).encode())
    with pytest.raises(CommitRefusedError, match="a newer checkpoint exists"):
        table.commit(state)


def test_a_reader_finds_its_way_back_to_a_log_that_was_trimmed(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    reader = left_behind(tmp_path, 0)
    for n in range(4, 9):
        process(table, n)
    trim(table, 8)
    assert reader.refresh().n == 8


def test_the_newest_commit_of_a_trimmed_log_whose_pointer_is_lost(tmp_path: Path) -> None:
    """A copy has no pointer to the last Delta checkpoint."""
    table = make(tmp_path, 4)
    assert newest_commit(Storage(str(tmp_path / "none"))) is None
    then = newest_commit(table.log)
    trim(table, 4)
    (Path(table.log.uri()) / "_delta_log" / "_last_checkpoint").unlink()
    assert newest_commit(table.log) == then is not None
