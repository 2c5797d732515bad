"""Bronze is read as far as the chains of duplicates reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.silver.copies import Copy, Earlier, candidates, first_copies
from headgate.history.backfill import chains
from headgate.history.backfill.chains import (
    BronzeDuplicates,
    Duplicate,
    Link,
    merged_spans,
    with_chains,
    with_links,
)
from headgate.history.backfill.selection import EVERYTHING, LATEST, TimeSpan
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.replay import RecordPosition
from headgate.lake.tables.table import Table

WITHIN = 10
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def finding(duplicates: Sequence[Duplicate]) -> Callable[[TimeSpan], Iterator[Duplicate]]:
    return lambda span: (each for each in duplicates if span[0] <= each[1] <= span[1])


@pytest.mark.parametrize(
    ("duplicates", "span"),
    [
        ([], (0, 99)),
        ([("a", 50), ("a", -1), ("a", 110)], (0, 99)),
        ([("a", 10), ("a", 89)], (0, 99)),
        ([("a", 4), ("a", 93)], (-6, 103)),
        ([("a", 4), ("a", -6), ("a", -16), ("a", -27)], (-26, 99)),
        ([("a", 4), ("b", -6)], (-6, 99)),
        ([("a", 97), ("a", 105), ("b", 112), ("a", 115)], (0, 125)),
    ],
)
def test_whole_chains_are_read(duplicates: list[Duplicate], span: TimeSpan) -> None:
    assert with_chains((0, 99), WITHIN, finding(duplicates)) == span


def test_a_range_without_an_end_and_a_chain_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [("a", -9 * n) for n in range(20)]
    assert with_chains((0, LATEST - 1), WITHIN, finding(long)) == (-181, LATEST - 1)
    monkeypatch.setattr(chains, "MOST_STEPS", 9)
    assert with_chains((0, LATEST - 1), WITHIN, finding(long)) == EVERYTHING


Sent = tuple[str, int, bool]
"""The id and the time of a valid record, and whether it meets the rules."""


def placed(log: Sequence[Sent]) -> list[tuple[Copy, bool, bool]]:
    """Each record, whether it is a duplicate, and whether it meets the rules."""
    found: list[tuple[Copy, bool, bool]] = []
    for offset, (id_, time, passes) in enumerate(log):
        known = (copy for copy, _, _ in found if copy.id == id_)
        is_duplicate = any(abs(copy.time - time) <= WITHIN for copy in known)
        found.append((Copy(id_, RecordPosition(0, offset), time), is_duplicate, passes))
    return found


def silver(rows: Sequence[tuple[Copy, bool, bool]]) -> set[Copy]:
    kept = {copy for copy, is_duplicate, passes in rows if passes and not is_duplicate}
    apart = [copy for copy, is_duplicate, passes in rows if not passes and not is_duplicate]
    again = [copy for copy, is_duplicate, passes in rows if passes and is_duplicate]
    taken = first_copies(candidates(again, Earlier(WITHIN, apart)), Earlier(WITHIN, kept))
    return kept | set(taken)


def walk(bad: Sequence[int], steps: Sequence[int]) -> list[Sent]:
    """Records that break a rule at some times, then copies with ``steps`` between them."""
    good = accumulate(steps, initial=-45)
    return [*(("a", time, False) for time in bad), *(("a", time, True) for time in good)]


SENT = st.tuples(st.sampled_from("aab"), st.integers(-60, 60), st.booleans())
WALKS = st.builds(
    walk,
    st.lists(st.integers(-50, 5), min_size=2, max_size=5),
    st.lists(st.integers(5, 11), min_size=6, max_size=12),
)


@settings(max_examples=300)
@given(WALKS | st.lists(SENT, min_size=5, max_size=25), st.integers(0, 15))
def test_the_rows_of_a_range_are_those_of_everything(log: list[Sent], end: int) -> None:
    rows = placed(log)
    duplicates = [(copy.id, copy.time) for copy, is_duplicate, _ in rows if is_duplicate]
    first, last = with_chains((0, end), WITHIN, finding(duplicates))
    read = [row for row in rows if first <= row[0].time <= last]
    whole, part = ({c for c in silver(of) if 0 <= c.time <= end} for of in (rows, read))
    assert part == whole


@pytest.mark.parametrize(
    ("links", "spans"),
    [
        ([], [(0, 99)]),
        ([(50, 60), (200, 300)], [(0, 99)]),
        ([(50, 300)], [(0, 99), (300, 300)]),  # a copy in the range
        ([(300, 50)], [(0, 99), (300, 300)]),  # a record in the range, which is not lost
        ([(300, 50), (300, -70), (7, 8)], [(-70, -70), (0, 99), (300, 300)]),
        ([(50, 99), (99, 100)], [(0, 99), (100, 100)]),
    ],
)
def test_a_copy_and_the_record_that_it_corrects_are_read_both(
    links: list[Link], spans: list[TimeSpan]
) -> None:
    assert with_links((0, 99), links, lambda span: span) == spans


def test_chains_of_a_corrected_record_are_read_too() -> None:
    find = finding([("a", 296), ("a", 305), ("b", 400)])
    read = with_links((0, 99), [(50, 300)], lambda span: with_chains(span, WITHIN, find))
    assert read == [(0, 99), (286, 315)]


def test_spans_are_merged() -> None:
    assert merged_spans([(5, 9), (0, 5), (20, 30), (22, 25)]) == [(0, 9), (20, 30)]


Corrected = tuple[int, int]
"""Which record of a log a replay corrects, and the time of its copy."""


def replayed(
    rows: Sequence[tuple[Copy, bool, bool]], corrections: Sequence[Corrected]
) -> list[Copy]:
    """Good copies, each in a replay of its own. Their positions say in which order."""
    of = [(rows[index % len(rows)][0], time) for index, time in corrections]
    return [
        Copy(record.id, RecordPosition(-1, number), time, record.position)
        for number, (record, time) in enumerate(of)
    ]


def silver_after(rows: Sequence[tuple[Copy, bool, bool]], copies: Sequence[Copy]) -> set[Copy]:
    """Silver after replays of good copies, which are all duplicates."""
    kept = silver(rows)
    apart = [copy for copy, is_duplicate, passes in rows if not passes and not is_duplicate]
    for copy in copies:
        corrected = {each.corrects for each in kept}
        rejected = Earlier(WITHIN, (row for row in apart if row.position not in corrected))
        kept |= set(first_copies(candidates([copy], rejected), Earlier(WITHIN, kept)))
    return kept


@settings(max_examples=300)
@given(
    st.lists(SENT, min_size=5, max_size=25),
    st.lists(st.tuples(st.integers(0, 25), st.integers(-60, 60)), max_size=6),
    st.integers(0, 15),
)
def test_the_rows_of_a_range_with_replays_are_those_of_everything(
    log: list[Sent], corrections: list[Corrected], end: int
) -> None:
    rows = placed(log)
    copies = replayed(rows, corrections)
    duplicates = [(copy.id, copy.time) for copy, is_duplicate, _ in rows if is_duplicate]
    find = finding([*duplicates, *((copy.id, copy.time) for copy in copies)])
    times = {copy.position: copy.time for copy, _, _ in rows}
    links = [(copy.time, times[copy.corrects]) for copy in copies if copy.corrects]
    spans = with_links((0, end), links, lambda span: with_chains(span, WITHIN, find))

    def is_read(copy: Copy) -> bool:
        return any(first <= copy.time <= last for first, last in spans)

    read = [row for row in rows if is_read(row[0])], [copy for copy in copies if is_read(copy)]
    whole, part = (
        {c for c in silver_after(*of) if 0 <= c.time <= end} for of in ((rows, copies), read)
    )
    assert part == whole


def test_duplicates_are_read_from_bronze(tmp_path: Path) -> None:
    table = Table(Storage(str(tmp_path)), "bronze/b", pipeline="p")
    schema = pa.schema(
        {
            "event_id": pa.string(),
            "event_time": pa.timestamp("us", "UTC"),
            "duplicate": pa.bool_(),
        }
    )
    table.create(schema, "digest", time_column="event_time")
    table.fence(1)
    rows = [("x", 0, False), ("x", 5, True), ("y", 7, True), (None, None, False)]
    for n, part in enumerate((rows[:2], rows[2:]), start=1):
        state = table.refresh().advanced_to(n, NOON)
        values = [
            {
                "event_id": id_,
                "event_time": None if at is None else NOON + timedelta(microseconds=at),
                "duplicate": flag,
            }
            for id_, at, flag in part
        ]
        content = pa.Table.from_pylist(values, schema)
        table.commit(state, stage_arrow(table, state, content, time_column="event_time"))
    table.refresh()
    noon, found = int(NOON.timestamp()) * 10**6, BronzeDuplicates(table.storage, table.handle)
    assert sorted(found.find((noon, noon + 7))) == [("x", noon + 5), ("y", noon + 7)]
    assert [*found.find((noon + 6, noon + 9))] == [("y", noon + 7)]
    assert [*found.find((noon, noon + 4))] == []
