"""Stamps of several partitions equal the oracle's, with any batches and any memory limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.declaration.model import OnDiffering
from headgate.flow.bronze import dedup_index
from headgate.flow.bronze.dedup_index import DEDUP_ROWS, DedupIndex, Span
from headgate.flow.bronze.duplicate_matcher import DuplicateMatcher
from headgate.flow.bronze.sequencing import (
    SEQUENCER_INPUT,
    Sequenced,
    sequence,
    sequence_beside,
)
from tests.oracle import Rules, SourceRecord
from tests.oracle.stamps import Stamped, closing_clock, stamp
from tests.support.events import reading
from tests.support.landing import ARRIVED
from tests.support.rounds import IN_FULL

PARTITIONS = 3
WITHIN = 4  # seconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXAMPLES = 2000 if IN_FULL else 50

Micros = int | None


@dataclass(frozen=True)
class Sent:
    """``second`` is None for a record without a time. ``variant`` changes the bytes. ``failed``
    gives a field a value of the wrong type."""

    partition: int
    id: str | None
    second: int | None
    variant: int = 0
    failed: bool = False

    def record(self, offset: int) -> SourceRecord:
        at = None if self.second is None else ARRIVED + timedelta(seconds=self.second)
        fields: dict[str, object] = {"id": self.id, "variant": "x" if self.failed else self.variant}
        fields["at"] = None if at is None else at.isoformat()
        return SourceRecord(self.partition, offset, json.dumps(fields).encode(), ARRIVED)


SENT = st.builds(
    Sent,
    # Few partitions and ids, and few failures, so that copies meet.
    st.sampled_from([0, 0, 0, *range(PARTITIONS)]),
    st.sampled_from(["a", "a", "a", "b", None]),
    # -30 is a stray, 3700 is past ``future_after``; the others meet within a few buckets.
    st.one_of(st.integers(0, 20), st.sampled_from([None, -30, 3700])),
    st.integers(0, 1),
    st.sampled_from([False, False, False, True]),
)


@st.composite
def logs(draw: st.DrawFn) -> list[list[Sent]]:
    """Batches of records; within a partition they are in log order."""
    return draw(st.lists(st.lists(SENT, min_size=3, max_size=8), min_size=1, max_size=5))


@pytest.fixture(scope="module", autouse=True)
def _narrow_buckets() -> Iterator[None]:
    """``WITHIN`` has several buckets, as a long ``within`` has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup_index, "_HOUR", 1_000_000)
        yield


@pytest.fixture(scope="module", autouse=True)
def _one_connection() -> Iterator[None]:
    """A matcher opens a connection at its first query, which takes longer than all of its
    queries."""
    with (
        duckdb.connect(":memory:", config={"threads": 1}) as shared,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(DuplicateMatcher, "_connection", shared)
        yield


class Log:
    """Bronze without Spark: stamps batches and keeps their rows. A restart drops the dedup
    index."""

    def __init__(self, differing: OnDiffering, rows_in_memory: int) -> None:
        self._differing = differing
        self._rows_in_memory = rows_in_memory
        self._kept: list[pa.Table] = []
        self._seen: DedupIndex | None = None
        self.clocks: dict[str, int] = {}
        self.watermark: int | None = None
        self.corrected = 0
        self.stamps: dict[tuple[int, int], tuple[Micros, bool, bool]] = {}

    def restart(self) -> None:
        self._seen = None

    def ingest(self, stamped: Sequence[Stamped]) -> None:
        if self._seen is None:
            newest = max(self.clocks.values(), default=None)
            within = WITHIN * 1_000_000
            self._seen = DedupIndex(
                within, self._differing, self._load, newest, self._rows_in_memory
            )
        in_order = sorted(stamped, key=lambda s: (s.source.partition, s.source.offset))
        thin = pa.Table.from_pylist([_thin(s) for s in in_order], SEQUENCER_INPUT)
        result = sequence(thin, self.clocks, self.watermark, range(PARTITIONS), self._seen)
        self._kept.append(thin)
        self._seen.add(thin)
        self.clocks, self.watermark = dict(result.clocks), result.watermark
        self.corrected += result.corrected
        marked = result.stamps.set_column(1, "clock", result.stamps["clock"].cast(pa.int64()))
        for row in marked.to_pylist():
            source = in_order[row["row"]].source
            at = source.partition, source.offset
            self.stamps[at] = (row["clock"], row["duplicate"], row["differing"])

    def _load(self, spans: Sequence[Span]) -> pa.Table:
        rows = [
            row
            for table in self._kept
            for row in table.to_pylist()
            if row["time"] is not None
            and row["hash_a"] is not None
            and any(first <= row["time"] <= last for first, last in spans)
        ]
        return pa.Table.from_pylist(rows, DEDUP_ROWS)


def _thin(one: Stamped) -> dict[str, object]:
    """A record as input of the sequencer, taken from the oracle's own parsing."""
    usable = one.event_time is not None and not one.future
    return {
        "partition": one.source.partition,
        "offset": one.source.offset,
        "time": _micros(one.event_time) if usable else None,
        "hash_a": None if one.event_id is None else hash(("a", one.event_id)),
        "hash_b": None if one.event_id is None else hash(("b", one.event_id)),
        "content": hash(one.source.value),
        "conforms": one.reason in (None, "differing_duplicate"),
    }


def _micros(time: datetime | None) -> Micros:
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


def _rules(differing: str) -> Rules:
    return Rules(
        event_id=("id",),
        time_column="at",
        time_format="iso",
        schema={"id": "string", "at": "timestamp", "variant": "int"},
        silver={},
        gold={},
        within=timedelta(seconds=WITHIN),
        differing=differing,
    )


@pytest.mark.long
@pytest.mark.parametrize("differing", ["warn", "keep", "quarantine"])
@settings(
    max_examples=EXAMPLES,
    derandomize=not IN_FULL,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    batches=logs(),
    restarts=st.sets(st.integers(0, 5)),
    rows_in_memory=st.sampled_from([0, 3, 1_000_000]),
)
def test_stamps_equal_the_oracle(
    batches: list[list[Sent]], differing: OnDiffering, restarts: set[int], rows_in_memory: int
) -> None:
    sent = [(number, one) for number, batch in enumerate(batches) for one in batch]
    records = [one.record(offset) for offset, (_, one) in enumerate(sent)]
    wanted = {s.source.offset: s for s in stamp(records, _rules(differing))}
    log = Log(differing, rows_in_memory)
    for number in range(len(batches)):
        if number in restarts:
            log.restart()
        log.ingest([wanted[o] for o, (batch, _) in enumerate(sent) if batch == number])
    for one in wanted.values():
        at = one.source.partition, one.source.offset
        clock, duplicate, differs = log.stamps.get(at, (None, False, False))
        assert (clock, duplicate) == (_micros(one.clock), one.duplicate), one
        if differing == "quarantine":
            assert differs == (one.reason == "differing_duplicate") or own_reason(one), one
    assert log.corrected == sum(one.corrected for one in wanted.values())
    assert log.watermark == _micros(closing_clock(wanted.values(), range(PARTITIONS)))


def own_reason(one: Stamped) -> bool:
    """Whether the record is invalid for another reason, which hides that it differs."""
    return one.reason not in (None, "differing_duplicate")


def test_one_partition_does_not_know_the_ids_of_another() -> None:
    at = ARRIVED - timedelta(minutes=1)
    values = [reading("same", at), reading("same", at)]
    records = [SourceRecord(partition, 0, values[partition], ARRIVED) for partition in (0, 1)]
    log = Log("warn", 100)
    log.ingest(stamp(records, _rules("warn")))
    assert log.stamps == {}


def rows(*times: int | None) -> pa.Table:
    """Valid records of partition 2 without ids."""
    columns = {name: pa.nulls(len(times)) for name in SEQUENCER_INPUT.names}
    columns |= {"partition": pa.array([2] * len(times)), "offset": pa.array(range(len(times)))}
    columns["conforms"] = pa.array([True] * len(times))
    columns["time"] = pa.array(times)
    return pa.table(columns).cast(SEQUENCER_INPUT)


def test_a_partition_that_joins_arrives_at_the_sources_watermark() -> None:
    """Its own watermark is lower, and the source's watermark never falls."""
    found = sequence(rows(5, 15, 12), {"0": 40, "1": 20}, 20, (0, 1, 2), None)
    assert {row: clock for row, (clock, *_) in stamped(found).items()} == {0: 20, 1: 20, 2: 20}
    assert found.clocks == {"0": 40, "1": 20, "2": 15}
    assert found.watermark == 20


def test_records_without_a_time_give_a_partition_no_clock() -> None:
    found = sequence(rows(None, None), {"0": 40}, None, (0, 2), None)
    assert (stamped(found), found.clocks, found.watermark) == ({}, {"0": 40}, None)


def one_id(contents: Sequence[int], *times: int) -> pa.Table:
    """Records as in ``rows``, all with one id."""
    columns = {"hash_a": [7] * len(times), "hash_b": [9] * len(times), "content": contents}
    made = rows(*times)
    for name, values in columns.items():
        made = made.set_column(made.schema.get_field_index(name), name, pa.array(values))
    return made.cast(SEQUENCER_INPUT)


def stamped(found: Sequenced) -> dict[int, tuple[Micros, bool, bool]]:
    columns = (found.stamps.column(name).to_pylist() for name in found.stamps.column_names)
    return {row: (_micros(clock), *flags) for row, clock, *flags in zip(*columns, strict=True)}


def test_corrected_copies_arrive_at_the_sources_watermark_and_move_none() -> None:
    was_valid = np.array([False, True, False, False])
    found = sequence_beside(rows(5, 30, 12, None), 20, None, was_valid)
    assert stamped(found) == {
        0: (20, False, False),
        1: (None, True, False),
        2: (20, False, False),
    }
    assert (found.clocks, found.watermark, found.duplicates) == ({}, 20, 1)


@pytest.mark.parametrize("differing", ["warn", "keep", "quarantine"])
def test_corrected_copies_are_copies_whatever_is_in_them(differing: OnDiffering) -> None:
    index = DedupIndex(10, differing, lambda _: DEDUP_ROWS.empty_table(), None)
    found = sequence_beside(one_id([1, 2, 3], 30, 35, 60), 20, index, np.zeros(3, np.bool_))
    assert stamped(found) == {1: (None, True, False)}
    assert (found.duplicates, found.differing) == (1, 0)


def test_history_arrives_at_the_sources_watermark_and_moves_none() -> None:
    index = DedupIndex(10, "quarantine", lambda _: DEDUP_ROWS.empty_table(), None)
    found = sequence_beside(one_id([1, 1, 2, 1], 5, 25, 30, 35), 20, index)
    assert stamped(found) == {
        0: (20, False, False),
        2: (None, False, True),
        3: (None, True, False),
    }
    assert (found.clocks, found.watermark) == ({}, 20)
    assert (found.duplicates, found.differing) == (1, 1)


def test_history_may_be_the_first_that_arrives() -> None:
    found = sequence_beside(rows(5, None, 3), None, None)
    assert (stamped(found), found.clocks, found.watermark) == ({}, {}, None)
