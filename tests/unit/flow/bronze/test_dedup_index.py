"""The cost of a look-up, what it waits for, and which failed records count as corrected. Tests in
``property`` check which records are duplicates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.flow.bronze.dedup_index import DEDUP_ROWS, DedupIndex, Span
from headgate.flow.bronze.id_index import IdIndex, Ints
from headgate.flow.bronze.sequencing import SEQUENCER_INPUT

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def test_one_id_for_all_records_does_not_stall_the_stream() -> None:
    """A comparison of all pairs, thousands of millions, would take minutes instead of seconds."""
    index = DedupIndex(600 * SECOND, "warn", lambda _: DEDUP_ROWS.empty_table(), None)
    began = time.monotonic()
    for batch in range(2):
        records = _records(40_000, first=batch * 40_000)
        found = index.find(records)
        index.add(records)
        assert found.duplicate.sum() == found.differing.sum() == 40_000 - (batch == 0)
    assert time.monotonic() - began < 60


def test_a_batch_before_1970_hides_no_later_ids() -> None:
    spans: list[Span] = []

    def load(wanted: Sequence[Span]) -> pa.Table:
        spans.extend(wanted)
        return DEDUP_ROWS.empty_table()

    index = DedupIndex(60 * SECOND, "warn", load, 5 * SECOND)
    before = _records(1, first=0, time=np.array([-600 * SECOND]))
    index.find(before)
    index.add(before)
    index.find(_records(1, first=1, time=np.array([10 * SECOND])))
    assert spans[-1] == (-60 * SECOND, 60 * SECOND - 1)


def test_more_ids_than_there_is_memory_for_are_read_again() -> None:
    held: list[pa.Table] = []
    asked: list[Span] = []

    def load(wanted: Sequence[Span]) -> pa.Table:
        asked.extend(wanted)
        rows = (row for table in held for row in table.to_pylist())
        found = [r for r in rows if any(first <= r["time"] <= last for first, last in wanted)]
        return pa.Table.from_pylist(found, DEDUP_ROWS)

    index = DedupIndex(SECOND, "warn", load, None, rows_in_memory=10)
    for second in (0, 10, 20):
        batch = _records(6, first=0, time=np.full(6, second * SECOND))
        index.find(batch)
        index.add(batch)
        held.append(batch)
    assert not asked
    again = (index.find(batch).duplicate.all() for batch in reversed(held))
    assert all(again)
    # The newest batch is in memory; the others were evicted.
    assert asked == [(9 * SECOND, 12 * SECOND - 1), (-SECOND, 2 * SECOND - 1)]


@pytest.mark.parametrize(("within", "most"), [(24 * HOUR, 27), (HOUR, 2), (90 * MINUTE, 3)])
def test_only_the_ids_within_reach_are_held(within: int, most: int) -> None:
    """An id each hour. More ids than the bound are held only if a batch may need them: those of
    ``within`` and of one bucket."""
    index = DedupIndex(within, "warn", lambda _: DEDUP_ROWS.empty_table(), None, rows_in_memory=1)
    for hour in range(60):
        batch = _records(1, first=hour, time=np.array([hour * HOUR + MINUTE]))
        index.find(batch)
        index.add(batch)
    index.find(batch)
    assert len(index._known) <= most


def test_copies_within_reach_are_found_and_no_others() -> None:
    """Copies of ids in all buckets, up to ``within`` before and after, and beyond by the least."""
    within = 20 * HOUR
    index = DedupIndex(within, "warn", lambda _: DEDUP_ROWS.empty_table(), None)
    times = np.array([0, 0, 0, 0, HOUR, 7 * HOUR])
    ids = np.arange(6)
    first = _records(6, first=0, time=times, hash_a=ids)
    index.find(first)
    index.add(first)
    moved = np.array([within, within + 1, -within, -within - 1, 3 * HOUR, 13 * HOUR])
    copies = _records(6, first=0, time=times + moved, hash_a=ids)
    assert index.find(copies).duplicate.tolist() == [True, False, True, False, True, True]


@pytest.mark.slow
def test_a_look_waits_for_what_is_being_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    add = IdIndex.add

    def slowly(index: IdIndex, keys: Ints, columns: Sequence[Ints]) -> None:
        time.sleep(0.3 if len(keys) else 0)
        add(index, keys, columns)

    monkeypatch.setattr(IdIndex, "add", slowly)
    index = DedupIndex(600 * SECOND, "warn", lambda _: DEDUP_ROWS.empty_table(), None)
    index.add(_records(10, first=0))
    assert index.find(_records(10, first=10)).duplicate.all()


def test_what_could_not_be_remembered_is_told_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(IdIndex, "add", full)
    index = DedupIndex(600 * SECOND, "warn", lambda _: DEDUP_ROWS.empty_table(), None)
    index.add(_records(10, first=0))
    with pytest.raises(MemoryError):
        index.find(_records(10, first=10))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "failed", "corrected"),
    [
        ([60, 60, 60], "xx.", 2),
        ([60, 60], ".x", 0),  # the failed record is a duplicate
        ([60, 121], "x.", 0),  # out of reach
        ([60, 120, 0], "x..", 1),  # counted once, though both copies are accepted
        ([60, 170, 119], "x..", 0),  # 119 is a duplicate of 170, and that is out of reach of 60
        ([60, 170, 119, 0], "x...", 0),  # the first copy in reach is that duplicate
        ([60, 0, 119, 170], "x...", 1),
        ([60, 60, 60, 60], "x.x.", 1),
    ],
)
def test_a_failed_record_is_corrected_once_however_the_log_is_cut(
    seconds: list[int], failed: str, corrected: int
) -> None:
    count = len(seconds)
    times = np.array(seconds) * SECOND
    log = _records(count, first=0, time=times, conforms=np.array([m != "x" for m in failed]))
    every = range(1 << count - 1)
    for cuts in every:
        ends = [0, *(n + 1 for n in range(count - 1) if cuts >> n & 1), count]
        # Hypothesis tries the other restarts in tests/property/test_sequencing.py.
        for restarts in (False, True) if cuts == every[-1] else (False,):
            assert _corrected(log, ends, restarts) == corrected, (ends, restarts)


def _corrected(log: pa.Table, ends: list[int], restarts: bool) -> int:
    """The corrected records of batches that end at ``ends``. With ``restarts``, each has a new
    driver."""
    held = log.slice(0, 0)

    def load(spans: Sequence[Span]) -> pa.Table:
        rows = [
            row
            for row in held.to_pylist()
            if any(first <= row["time"] <= last for first, last in spans)
        ]
        return pa.Table.from_pylist(rows, DEDUP_ROWS)

    index = DedupIndex(60 * SECOND, "warn", load, None)
    total = 0
    for begin, end in pairwise(ends):
        if restarts and begin:
            index = DedupIndex(60 * SECOND, "warn", load, max(held.column("time").to_pylist()))
        batch = log.slice(begin, end - begin)
        total += index.find(batch).corrected
        held = log.slice(0, end)
        index.add(batch)
    return total


def _records(count: int, first: int, **other: object) -> pa.Table:
    """Records of one id, each with other content, a millisecond apart."""
    number = np.arange(first, first + count)
    columns = {
        "partition": np.zeros(count, np.int32),
        "offset": number,
        "time": number * 1000,
        "seen": number,
        "hash_a": np.full(count, 7),
        "hash_b": np.full(count, 9),
        "content": number,
    }
    columns["conforms"] = np.ones(count, np.bool_)
    columns["size"] = np.ones(count)
    return pa.table({**columns, **other}).select(SEQUENCER_INPUT.names).cast(SEQUENCER_INPUT)
