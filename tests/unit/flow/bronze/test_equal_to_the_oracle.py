"""Rows of bronze, decoded and sequenced without Spark, equal those of the oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.model import Column, EventTime, Record
from headgate.declaration.type_parser import parse_type
from headgate.flow.bronze.decoding.decoder import Decoder
from headgate.flow.bronze.dedup_index import DEDUP_ROWS, DedupIndex
from headgate.flow.bronze.rows import RowShape
from headgate.flow.bronze.sequencing import in_log_order, sequence, sequencer_input
from headgate.lake.tables.record_shape import record_schema
from tests.oracle import Rules, SilverRules, SourceRecord, compare, derive

SEEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
WITHIN = timedelta(minutes=10)
SCHEMA = {"id": "string", "at": "timestamp", "s": "string", "t": "timestamp", "day": "date"}
RULES = Rules(("id",), "at", "iso", SCHEMA | {"m": "map<string,int>"}, {}, {}, WITHIN)
# The native decoder refuses a record with an undeclared field, so the validator reads it.
PATHS = pytest.mark.parametrize("more", [{}, {"other": 1}], ids=["decoder", "validator"])


def arrive(*documents: dict[str, Any], seen: datetime = SEEN) -> list[SourceRecord]:
    texts = (json.dumps(document).encode() for document in documents)
    return [SourceRecord(0, offset, text, seen) for offset, text in enumerate(texts)]


class Engine:
    """Bronze in memory. Each ``ingest`` is a batch."""

    def __init__(self, rules: Rules) -> None:
        schema = tuple(Column(name, parse_type(type_)) for name, type_ in rules.schema.items())
        self._record = Record(
            rules.event_id, EventTime(rules.time_column), schema, unknown_fields="rescue"
        )
        within = (rules.within or timedelta()) // timedelta(microseconds=1)
        # All rows are in memory, so none is read.
        self._index = DedupIndex(within, "warn", lambda _: DEDUP_ROWS.empty_table(), None)
        self._clocks: dict[str, int] = {}
        self._watermark: int | None = None
        self.rows: list[dict[str, Any]] = []

    @property
    def watermark(self) -> datetime | None:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        known = self._watermark
        return None if known is None else epoch + timedelta(microseconds=known)

    def ingest(self, records: Sequence[SourceRecord]) -> None:
        rows = [
            {"value": r.value, "partition": r.partition, "offset": r.offset}
            | {"ingested_at": r.ingested_at, "seen_at": r.ingested_at}
            for r in records
        ]
        block = pa.Table.from_pylist(rows, record_schema("file"))
        decoded = Decoder(self._record, "json").decode(block)
        ordered, _ = in_log_order([sequencer_input(decoded, self._record)])
        found = sequence(ordered, self._clocks, self._watermark, [0], self._index)
        self._index.add(ordered)
        self._clocks, self._watermark = dict(found.clocks), found.watermark
        columns = ("partition", "offset", "value", "event_id", "event_time", "reason")
        shape = RowShape(self._record, (*columns, "reason_column", "clock", "duplicate", "record"))
        self.rows += shape.stamped(decoded, found.stamps).to_pylist()


def ingested(rules: Rules, records: Sequence[SourceRecord]) -> Engine:
    """The engine after batches of two records, whose tables equal the oracle's."""
    engine = Engine(rules)
    for first in range(0, len(records), 2):
        engine.ingest(records[first : first + 2])
    expected = derive(records, replace(rules, unknown_fields="rescue"))
    rows = [row | {"column": row["reason_column"]} for row in engine.rows]
    assert compare(expected.bronze, rows, ("partition", "offset")) == []
    assert engine.watermark == expected.clock
    return engine


@PATHS
def test_a_time_in_the_future_moves_no_watermark_whatever_the_reason(more: dict[str, Any]) -> None:
    ahead: list[dict[str, Any]] = [
        *({"at": "2999-01-01T00:00:00Z"}, {"at": "9999-06-01T00:00:00Z"}),
        {"at": "2026-03-01T13:00:00.000001Z"},
        {"id": {}, "at": "2026-03-01T14:00:00Z", "day": "?"},
        {"id": "a", "at": "2999-01-01T00:00:00Z", "day": "?"},
    ]
    near = [{"at": "2026-03-01T11:01:00Z"}, {"id": "a", "at": "2026-03-01T11:00:00Z"}]
    engine = ingested(RULES, arrive(*(each | more for each in (*ahead, *near))))
    reasons = [row["reason"] for row in engine.rows]
    assert reasons == ["missing_id"] * 4 + ["future", "missing_id", None]
    assert engine.watermark == datetime(2026, 3, 1, 11, 1, tzinfo=UTC)


def test_a_time_in_the_future_has_no_clock() -> None:
    """A watermark can be after it: each record is compared with when its own file was seen."""
    known = arrive({"id": "a", "at": "2026-03-01T12:30:00Z"})
    at = "2026-03-01T12:10:00Z"
    early = arrive({}, {"id": "b", "at": at}, {"at": at}, seen=SEEN - timedelta(hours=1))[1:]
    engine = ingested(RULES, [*known, *early])
    found = [(row["reason"], row["clock"]) for row in engine.rows]
    assert found == [(None, None), ("future", None), ("missing_id", None)]


AT = "2026-03-01T11:00:00Z"
SAME = ("2026-03-01T11:00:00Z", "2026-03-01T11:00:00.000Z", "2026-03-01 12:00:00 +01:00")


@PATHS
@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        (("at",), "2026-03-01 11:00:00"),
        (("s", "at"), '["x","2026-03-01 11:00:00"]'),
        (("t", "s"), '["2026-03-01 11:00:00","x"]'),
        (("day", "t"), '["2026-03-01","2026-03-01 11:00:00"]'),
    ],
)
def test_an_instant_is_one_id_however_it_is_written(
    columns: tuple[str, ...], ids: str, more: dict[str, Any]
) -> None:
    values = [{"s": "x", "day": "2026-03-01"} | {"at": text, "t": text} | more for text in SAME]
    engine = ingested(replace(RULES, event_id=columns), arrive(*values))
    found = [(row["event_id"], row["duplicate"]) for row in engine.rows]
    assert found == [(ids, False), (ids, True), (ids, True)]


@PATHS
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T11:00:00.500Z", "2026-03-01 11:00:00.5"),
        ("2026-03-01T11:00:00.050Z", "2026-03-01 11:00:00.05"),
        ("2026-03-01T11:00:00.1234567Z", "2026-03-01 11:00:00.1234567"),
        ("2026-03-01T12:00:00.123456700+01:00", "2026-03-01 11:00:00.1234567"),
        ("2026-03-01T11:00:00,000000001Z", "2026-03-01 11:00:00.000000001"),
        ("2026-03-01 11:00:00.1234560000000 UTC", "2026-03-01 11:00:00.123456"),
        ("2026-03-01t11:00z", "2026-03-01 11:00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31 23:59:59.999999"),
        ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31 23:59:59"),
    ],
)
def test_the_text_of_an_instant(text: str, expected: str, more: dict[str, Any]) -> None:
    engine = ingested(replace(RULES, event_id=("t",)), arrive({"at": AT, "t": text} | more))
    assert engine.rows[0]["event_id"] == expected
    # As an event time it may be too early or in the future; it has an id nevertheless.
    engine = ingested(replace(RULES, event_id=("at",)), arrive({"at": text} | more))
    assert engine.rows[0]["event_id"] == expected


@PATHS
@pytest.mark.parametrize("text", ["noon", "2026-03-01T11:00:00", 1772359200, [], "\ud800", None])
def test_an_id_that_is_no_instant_is_missing(text: object, more: dict[str, Any]) -> None:
    given = {"s": "x", "at": AT, "t": text} | more
    engine = ingested(replace(RULES, event_id=("s", "t")), arrive(given))
    assert engine.rows[0]["reason"] == "missing_id"
    engine = ingested(replace(RULES, event_id=("s", "at")), arrive(given | {"at": text}))
    assert engine.rows[0]["reason"] == "missing_id"


@PATHS
def test_half_surrogates_that_become_one_key_leave_the_last_value(more: dict[str, Any]) -> None:
    """A map with a key twice would make every query over the column fail."""
    counts = dict(zip(("\ud800", "a", "\udc01"), (1, 2, 3), strict=True))
    records = arrive({"id": "a", "at": AT, "m": counts} | more)
    (row,) = derive(records, replace(RULES, silver={"all": SilverRules()})).silver["all"]
    assert ingested(RULES, records).rows[0]["record"]["m"] == list(row["m"].items())
    assert row["m"] == {"?": 3, "a": 2}
