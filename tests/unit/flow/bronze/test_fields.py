"""Columns are read from the fields that they name, and ids and times from paths into structs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.declaration.model import Column, EventTime, Record, RecordFormat
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import BIGINT, STRING, TIMESTAMP
from tests.support.decoding import decoded

AT = "2026-03-01T11:00:00Z"
# A quote, a backslash and a control character are names that the native decoder has not.
NAMES = ["@timestamp", "order id", "user.id", "größe", "_id", "$x", " a ", "", "🚀", "`b`", "'c'"]
NAMES += ["__proto__", "f0", "Id", "ID", 'a"b', "a\\b", "a\nb", "gro\u0308sse"]


def both(
    record: Record, *records: Any, format: RecordFormat = "json", ascii: bool = True
) -> list[Any]:
    """The rows of some records, which are the same if every record is validated."""
    values: list[bytes | None] = [json.dumps(each, ensure_ascii=ascii).encode() for each in records]
    rows = decoded(record, values, format=format)
    assert rows == decoded(record, values, format=format, all_validated=True)
    return rows


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_field_may_have_any_name(name: str, ascii: bool, format: RecordFormat) -> None:
    schema = (Column("key", STRING, name), Column("n", BIGINT), Column("at", TIMESTAMP, "@at"))
    record = Record(("key",), EventTime("at"), schema, unknown_fields="quarantine")
    good = {name: "x", "n": "7" if format == "csv" else 7, "@at": AT}
    others = [good | {"key": "y"}, good | {"at": AT}, {"n": good["n"], "@at": AT}]
    rows = both(record, good, *others, format=format, ascii=ascii)
    at = datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert rows[0]["record"] == {"key": "x", "n": 7, "at": at}
    assert [(row["event_id"], row["reason"]) for row in rows] == [
        ("x", None),
        ("x", "unknown_field"),
        ("x", "unknown_field"),
        (None, "missing_id"),
    ]
    assert rows[1]["reason_detail"] == "not declared: key"


def test_names_that_differ_only_in_case_or_normal_form_are_two_fields() -> None:
    names = ["id", "ID", "\u00f6", "o\u0308"]
    schema = [Column(f"c{n}", STRING, name) for n, name in enumerate(names)]
    record = Record((), EventTime("at"), (*schema, Column("at", TIMESTAMP)))
    (row,) = both(record, {name: str(n) for n, name in enumerate(names)} | {"at": AT})
    assert [row["record"][f"c{n}"] for n in range(4)] == ["0", "1", "2", "3"]


def test_two_columns_may_swap_their_names() -> None:
    schema = (Column("a", STRING, "b"), Column("b", STRING, "a"), Column("at", TIMESTAMP))
    record = Record(("a",), EventTime("at"), schema, unknown_fields="rescue")
    (row,) = both(record, {"a": "1", "b": "2", "at": AT, "c": 3})
    assert (row["event_id"], row["record"]["a"], row["record"]["b"]) == ("2", "2", "1")
    assert row["rescued"] == '{"c": 3}'


def test_details_name_the_field_as_it_stands_in_the_record() -> None:
    schema = (Column("key", STRING, "the key"), Column("n", BIGINT, "#n"))
    at = (Column("at", TIMESTAMP, "@at"), Column("more", parse_type("struct<m: int>"), "the more"))
    record = Record((), EventTime("at"), (*schema, *at))
    rows = both(
        record,
        *({"#n": "x", "@at": AT}, {"@at": "noon"}, {"the more": {"m": []}, "@at": AT}, {}),
    )
    assert [(row["reason"], row["reason_column"]) for row in rows] == [
        ("wrong_type", "n"),
        ("unparsable_time", None),
        ("wrong_type", "more"),
        ("missing_time", None),
    ]
    assert rows[0]["reason_detail"] == '#n is not of type bigint: "x"'
    assert rows[1]["reason_detail"].startswith("@at is not ISO 8601")
    assert rows[2]["reason_detail"] == "the more.m is not of type int: []"
    assert rows[3]["reason_detail"] == "@at is missing or empty"
    keyed = replace(record, event_id=("n", "key"))
    (row,) = both(keyed, {"#n": 1, "@at": AT})
    assert row["reason_detail"] == "the key is missing or empty"


PAYLOAD = parse_type(
    "struct<key: string, at: timestamp, text: string, ms: bigint, in: struct<d: date>>"
)
INSIDE = Record(
    ("payload.key",), EventTime("payload.at"), (Column("payload", PAYLOAD, "pay load"),)
)


@pytest.mark.parametrize(
    ("time", "value"),
    [
        (EventTime("payload.at"), {"at": AT}),
        (EventTime("payload.text"), {"text": AT}),
        (EventTime("payload.text", "yyyy/MM/dd HH", "UTC"), {"text": "2026/03/01 11"}),
        (EventTime("payload.ms", "epoch_millis"), {"ms": 1772362800000}),
    ],
)
def test_an_id_and_a_time_inside_of_a_struct(time: EventTime, value: dict[str, object]) -> None:
    record = replace(INSIDE, event_time=time)
    good = {"key": "k"} | value
    records = [good, {"key": "k"}, value, None, "k", {**good, "key": 5}, {**good, "key": []}]
    rows = both(record, *({"pay load": each} for each in records), {})
    missing = ["missing_time", *["missing_id"] * 3]
    assert [row["reason"] for row in rows] == [None, *missing, None, "missing_id", "missing_id"]
    assert [row["event_id"] for row in rows] == ["k", "k", None, None, None, "5", None, None]
    assert rows[0]["event_time"] == datetime(2026, 3, 1, 11, tzinfo=UTC)


def test_a_deep_id_of_several_parts() -> None:
    record = replace(INSIDE, event_id=("payload.in.d", "payload.at"))
    value = {"at": "2026-03-01T12:00:00.0000001+01:00", "in": {"d": "2026-03-01"}}
    rows = both(record, {"pay load": value}, {"pay load": value | {"in": []}})
    assert [row["event_id"] for row in rows] == [
        '["2026-03-01","2026-03-01 11:00:00.0000001"]',
        None,
    ]


def test_a_wrong_time_inside_of_a_struct_is_named_with_its_path() -> None:
    (row,) = both(INSIDE, {"pay load": {"key": "k", "at": "noon"}})
    assert row["reason"] == "unparsable_time"
    assert row["reason_detail"].startswith("pay load.at is not ISO 8601")


@pytest.mark.parametrize("ignores", [False, True])
def test_a_record_without_a_value_is_a_tombstone(ignores: bool) -> None:
    record = replace(INSIDE, ignores_tombstones=ignores)
    values: list[bytes | None] = [None, b"", b"null"]
    rows = decoded(record, values)
    assert rows == decoded(record, values, all_validated=True)
    reason = "ignored" if ignores else "tombstone"
    assert [row["reason"] for row in rows] == [reason, "unparsable", "not_an_object"]
    assert [row["record"] for row in rows] == [None] * 3
    # A line of CSV that has no cells is not a tombstone.
    flat = replace(
        record, event_id=(), event_time=EventTime("at"), schema=(Column("at", TIMESTAMP),)
    )
    assert decoded(flat, [None], format="csv")[0]["reason"] == "unparsable"
