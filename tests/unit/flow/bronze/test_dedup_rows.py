"""Which rows of a file the index of ids reads, and what it costs to choose them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.bronze import dedup_index
from headgate.flow.bronze.dedup_index import Span
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile

HOUR = 3_600_000_000
REASONS = (None, "future", "wrong_type", "differing_duplicate")
Row = tuple[int | None, str | None, str | None]
FILE = DataFile("a.parquet", 1, 1, "{}", {})


def read(batches: Sequence[pa.RecordBatch], spans: Sequence[Span]) -> pa.Table:
    """``batches`` are the pieces of the only file."""

    def pieces(*_: Any) -> Iterator[pa.RecordBatch]:
        return iter(batches)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dedup_index, "sound_batches", pieces)
        return dedup_index.dedup_rows(Storage("/none"), [FILE], spans)


def piece(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of bronze from their event time, id and reason."""
    times, ids, reasons = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "partition": pa.array(range(len(rows)), pa.int32()),
        "event_time": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "event_id": pa.array(ids, pa.string()),
        "value": pa.array([b"{}"] * len(rows), pa.binary()),
        "reason": pa.array(reasons, pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


@st.composite
def disjoint(draw: st.DrawFn) -> list[Span]:
    """Spans that rise, some of one microsecond, and some without a gap between them."""
    steps = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=6))
    spans, end = list[Span](), draw(st.integers(-30, 10))
    for gap, length in steps:
        spans.append((end + gap, end + gap + length))
        end += gap + length
    return spans


TIMES = st.none() | st.integers(-32, 60)
ROWS = st.lists(
    st.tuples(TIMES, st.sampled_from([None, "a", "b"]), st.sampled_from(REASONS)), max_size=40
)


@given(disjoint(), st.lists(ROWS, max_size=3))
def test_the_rows_with_an_id_within_the_spans_are_read(
    spans: list[Span], rows: list[list[Row]]
) -> None:
    found = read(list(map(piece, rows)), spans)
    expected = [
        (number, at, reason in (None, "differing_duplicate"))
        for each in rows
        for number, (at, id_, reason) in enumerate(each)
        if at is not None
        and id_ is not None
        and reason != "future"
        and any(first <= at <= last for first, last in spans)
    ]
    columns = (found[name].to_pylist() for name in ("partition", "time", "conforms"))
    assert list(zip(*columns, strict=True)) == expected


def test_a_device_that_was_away_for_a_year_does_not_stall_the_stream() -> None:
    """It needs each second hour of two years. To compare each piece with each hour would take a
    quarter of a second for a piece."""
    spans = [(2 * hour * HOUR, (2 * hour + 1) * HOUR - 1) for hour in range(8_760)]
    times = np.random.default_rng(1).integers(0, 2 * 8_760 * HOUR, 100).tolist()
    rows = piece([(at, f"id {n}", None) for n, at in enumerate(times)])
    began = time.process_time()
    found = read([rows] * 200, spans)
    assert time.process_time() - began < 5
    assert len(found) == 200 * sum(at // HOUR % 2 == 0 for at in times)
