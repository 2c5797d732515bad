"""When records arrived, by the definition in plain Python, in any batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.bronze.arrivals import (
    Arrivals,
    arrivals,
    arrivals_of_copies,
    arrivals_of_history,
)
from headgate.flow.bronze.sequencing import SEQUENCER_INPUT, STAMPS, in_log_order
from tests.support.rounds import IN_FULL

Sent = tuple[int, int]
"""The partition of a record and when it was seen."""
SENT = st.tuples(st.integers(0, 2), st.integers(0, 30))


def thin(sent: Iterable[Sent], offsets: dict[int, int]) -> pa.Table:
    rows = []
    for partition, seen in sent:
        offset = offsets[partition] = offsets.get(partition, -1) + 1
        rows.append({"partition": partition, "offset": offset, "seen": seen})
    ordered, _ = in_log_order([pa.Table.from_pylist(rows, SEQUENCER_INPUT)])
    return ordered


def times(ordered: pa.Table, found: Arrivals, name: str = "arrived") -> list[int | None]:
    """The arrivals of the records of a batch, or their arrival clocks."""
    stamps = found.added_to(STAMPS.empty_table()).to_pydict()
    moved = dict(zip(stamps["row"], stamps[name], strict=True))
    told = [moved.get(row) for row in range(len(ordered))]
    known = [None if time is None else int(time.timestamp() * 1e6) for time in told]
    if name != "arrived":
        return known
    seen = ordered.column("seen").to_pylist()
    return [each if time is None else time for time, each in zip(known, seen, strict=True)]


class Log:
    """The stream, in batches."""

    def __init__(self, partitions: Sequence[int]) -> None:
        self.partitions = partitions
        self.clocks: dict[str, int] = {}
        self.watermark: int | None = None
        self.offsets: dict[int, int] = {}
        self.arrived: dict[Sent, int | None] = {}

    def ingest(self, sent: Iterable[Sent]) -> list[int | None]:
        ordered = thin(sent, self.offsets)
        found = arrivals(ordered, self.clocks, self.watermark, self.partitions)
        self.clocks, self.watermark = dict(found.clocks), found.watermark
        there = times(ordered, found)
        assert set(times(ordered, found, "arrival_clock")) <= {None}, "nothing is late"
        places = zip(*(ordered.column(n).to_pylist() for n in ("partition", "offset")), strict=True)
        self.arrived |= dict(zip(places, there, strict=True))
        return there


@given(st.lists(SENT, max_size=20), st.sets(st.integers(0, 20), max_size=4))
@settings(max_examples=500 if IN_FULL else 50, deadline=None)
def test_they_are_those_of_the_log_in_any_batches(sent: list[Sent], cuts: set[int]) -> None:
    log, ends = Log((0, 1, 2)), [0, *sorted(cuts), len(sent)]
    for begin, end in pairwise(ends):
        before = log.watermark
        there = log.ingest(sent[begin:end])
        assert all(time is not None and time >= (before or 0) for time in there)
    latest: dict[int, int] = {}
    counts: dict[int, int] = {}
    for partition, seen in sent:
        latest[partition] = max(seen, latest.get(partition, 0))
        offset = counts[partition] = counts.get(partition, -1) + 1
        assert log.arrived[partition, offset] == latest[partition]
    assert log.watermark == (min(latest.values()) if len(latest) == 3 else None)


def test_a_partition_that_returns_arrives_at_the_sources_watermark() -> None:
    """Otherwise its records would be in windows that are final."""
    log = Log((0,))
    log.ingest([(0, 20)])
    log.partitions = (0, 1)
    assert log.ingest([(1, 5), (1, 25), (1, 7)]) == [20, 25, 25]
    assert (log.clocks, log.watermark) == ({"0": 20, "1": 25}, 20)


def test_history_keeps_its_arrival_and_meets_the_sources_watermark() -> None:
    ordered = thin([(0, 5), (0, 20), (0, 3), (0, 25)], {})
    found = arrivals_of_history(ordered, 20)
    assert times(ordered, found) == [5, 20, 3, 25]
    assert times(ordered, found, "arrival_clock") == [20, None, 20, None]
    assert (found.clocks, found.watermark) == ({}, 20)
    assert len(arrivals_of_history(ordered, None).stamps) == 0


@pytest.mark.parametrize(("watermark", "arrived"), [(20, [20, 20]), (None, [5, 30])])
def test_corrected_copies_arrive_at_the_sources_watermark(
    watermark: int | None, arrived: list[int]
) -> None:
    ordered = thin([(0, 5), (0, 30)], {})
    found = arrivals_of_copies(ordered, watermark)
    assert times(ordered, found) == arrived
    assert set(times(ordered, found, "arrival_clock")) == {None}
    assert (found.clocks, found.watermark) == ({}, watermark)


def test_they_are_added_to_other_stamps() -> None:
    other = pa.Table.from_pylist(
        [{"row": 0, "duplicate": True}, {"row": 2, "duplicate": True}], STAMPS
    )
    ordered = thin([(0, 9), (0, 5), (0, 7)], {})
    stamps = arrivals(ordered, {}, None, (0,)).added_to(other)
    assert stamps.column("row").to_pylist() == [0, 1, 2]
    assert stamps.column("duplicate").to_pylist() == [True, None, True]
    assert stamps.column("arrived").null_count == 1


def test_a_record_that_was_never_seen_is_a_defect_of_the_source() -> None:
    lost = pa.Table.from_pylist([{"partition": 0, "offset": 1}], SEQUENCER_INPUT)
    with pytest.raises(AssertionError, match="have no seen"):
        in_log_order([lost])
