"""One record on its own: is it a document, and what are its id, its time and its types?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.oracle import derive, read_files
from tests.unit.oracle.rules_of_shop import RULES, SEEN, arrive, at, column, order, reason, typed_as

GOOD = order("a", "10:00", item="tea", amount=2)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nonsense",
        b'{"id": "a"',
        b'{"id": "a"} {"id": "b"}',
        b'{"id": "a"}]',
        b'{"id": "a",}',
        b"{'id': 'a'}",
        b'{"id": "a"} // why',
        b'{"amount": NaN}',
        b'{"amount": -Infinity}',
        b'{"amount": 01}',
        b'{"amount": .5}',
        b'{"amount": +5}',
        b'{"amount": 0x10}',
        b'{"amount": \xd9\xa3}',  # an Arabic digit
        b'{"id": "tab\there"}',
        b'{"id": "\x00"}',
        b'{"id": "\\x41"}',
        b'{"id": "\xff"}',
        b'{"id": "\xed\xa0\x80"}',  # a surrogate in UTF-8
        b'{"id": "\xc0\x80"}',  # an overlong NUL
        b"\xef\xbb\xbf" + GOOD,
        b"\xc2\xa0" + GOOD,  # a space, but not JSON's
        b"\x0c" + GOOD,
        b"[" * 501 + b"]" * 501,
        b'{"x": ' + b"[" * 500 + b"]" * 500 + b"}",
        b"[" * 100_000,
        GOOD[:-1] + b', "digits": ' + b"7" * 5001 + b"}",
        GOOD[:-1] + b', "digits": 0.' + b"7" * 4999 + b"e1}",
        GOOD[:-1] + b', "' + b"n" * 50_001 + b'": 1}',
    ],
)
def test_what_is_not_one_strict_document_is_unparsable(value: bytes) -> None:
    assert reason(value) == ("unparsable", None)


@pytest.mark.parametrize("value", [b"[]", b"1", b'"a"', b"null", b"true", b" [1] \r"])
def test_a_document_that_is_not_an_object(value: bytes) -> None:
    assert reason(value) == ("not_an_object", None)


@pytest.mark.parametrize(
    "value",
    [
        b" \t\r" + GOOD + b"\r",
        GOOD[:-1] + b', "nul": "\\u0000", "quote": "\\"[{", "slash": "\\/"}',
        GOOD[:-1] + b', "deep": ' + b"[" * 499 + b"]" * 499 + b"}",
        GOOD[:-1] + b', "digits": -' + b"7" * 5000 + b"}",
        GOOD[:-1] + b', "' + b"n" * 50_000 + b'": 1}',
        GOOD[:-1] + b', "text": "' + b"[" * 600 + b'"}',
        GOOD[:-1] + b', "": {"": 1e999}}',
        GOOD[:-1] + b', "lone": "\\ud800"}',
    ],
)
def test_what_is_strange_and_good(value: bytes) -> None:
    assert reason(value) == (None, None)


def test_lines_are_records_and_blank_lines_are_not() -> None:
    content = b'{"a": 1}\n\n \t\r\n{"b": 2}\r\nlast'
    records = read_files([(content, SEEN), (b"\n\x0b\n", SEEN)])
    assert [record.value for record in records] == [b'{"a": 1}', b'{"b": 2}\r', b"last", b"\x0b"]
    assert [record.offset for record in records] == [0, 14, 24, (1 << 36) + 1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"at": "2026-03-01T10:00:00Z"}', "missing_id"),
        (b'{"id": null, "at": "2026-03-01T10:00:00Z"}', "missing_id"),
        (b'{"id": ["a"], "at": "2026-03-01T10:00:00Z"}', "missing_id"),
        (b'{"Id": "a", "at": "2026-03-01T10:00:00Z"}', "missing_id"),
        (b'{"id": {}, "amount": "x"}', "missing_id"),
        (b'{"id": "a"}', "missing_time"),
        (b'{"id": "a", "at": null}', "missing_time"),
        (b'{"id": "a", "at": "noon"}', "unparsable_time"),
        (b'{"id": "a", "at": 1772359200}', "unparsable_time"),
        (b'{"id": "a", "at": "noon", "amount": "x"}', "unparsable_time"),
        (b'{"id": "a", "at": "2026-03-01T13:00:00.000001Z"}', "future"),
        (b'{"id": "a", "at": "2026-03-01T13:00:00.000001Z", "amount": "x"}', "future"),
        (b'{"id": "a", "at": "2026-03-01T13:00:00Z"}', None),
        (b'{"amount": "x", "at": "9999-01-01T00:00:00Z"}', "missing_id"),
    ],
)
def test_the_first_reason_in_order_is_the_reason(value: bytes, expected: str | None) -> None:
    assert reason(value) == (expected, None)


def test_wrong_type_names_the_first_column_in_declared_order() -> None:
    value = order("a", "10:00", amount="2", item=[])
    assert reason(value) == ("wrong_type", "item")


def test_the_last_of_duplicate_keys_counts() -> None:
    value = GOOD[:-1] + b', "amount": {}, "amount": 7}'
    assert derive(arrive(value), RULES).silver["orders"][0]["amount"] == 7
    assert reason(GOOD[:-1] + b', "amount": {}}') == ("wrong_type", "amount")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T10:00:00Z", at("10:00")),
        ("2026-03-01 10:00:00+00:00", at("10:00")),
        ("2026-03-01T12:30:00.5+02:30", at("10:00:00.5")),
        ("2026-02-28T16:00:00-18:00", at("10:00")),
        ("2026-03-01T10:00:00.123456789Z", at("10:00:00.123456")),
        ("0010-01-01T00:00:00Z", datetime(10, 1, 1, tzinfo=UTC)),
        ("0009-12-31T23:59:59.999999Z", None),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2026-02-29T00:00:00Z", None),
        ("2026-03-01T24:00:00Z", None),
        ("2026-03-01T10:00:60Z", None),
        ("2026-03-01T10:00:00", None),
        ("2026-03-01T10:00Z", at("10:00")),
        ("2026-03-01t10:00z", at("10:00")),
        ("2026-03-01T12:00+02", at("10:00")),
        ("2026-03-01T10:00", None),
        ("2026-03-01T10Z", None),
        ("2026-03-01", None),
        ("2026-3-1T10:00:00Z", None),
        ("2026-03-01T10:00:00.Z", None),
        ("2026-03-01T10:00:00.1234567890Z", at("10:00:00.123456")),
        ("2026-03-01T10:00:00,5Z", at("10:00:00.5")),
        ("2026-03-01T10:00.5Z", None),
        ("2026-03-01T11:00+01:00[Europe/Paris]", at("10:00")),
        ("2026-03-01T11:00[Europe/Paris]", None),
        ("2026-03-01T10:09:21+00:09:21", at("10:00")),
        ("2026-03-01T10:00:00+00:09:60", None),
        ("2026-W09-7T10:00:00Z", None),
        ("2026-060T10:00:00Z", None),
        ("+10000-01-01T00:00:00Z", None),
        ("-0044-03-15T00:00:00Z", None),
        ("2026-03-01T10:00:00-00:00", at("10:00")),
        ("2026-03-02T00:00:00+14:00", at("10:00")),
        ("2026-02-28T22:00:00-12:00", at("10:00")),
        ("2026-03-01T10:00:00+18:01", None),
        ("2026-03-01T10:00:00+01:60", None),
        ("2026-03-01T11:00:00+0100", at("10:00")),
        ("2026-03-01 11:00:00+01", at("10:00")),
        ("2026-03-01 04:30:00.5 -0530", at("10:00:00.5")),
        ("2026-03-01T10:00:00 Z", at("10:00")),
        ("2026-03-01T10:00:00+1801", None),
        ("2026-03-01T10:00:00+0160", None),
        ("2026-03-01T10:00:00+1", None),
        ("2026-03-01T10:00:00+010", None),
        ("2026-03-01T10:00:00+01:0", None),
        ("2026-03-01T10:00:00  +01:00", None),
        ("2026-03-01T10:00:00+01:00 ", at("09:00")),
        ("2026-03-01 10:00:00 UTC", at("10:00")),
        ("2026-03-01T10:00:00 GMT", None),
        (" 2026-03-01T10:00:00Z", at("10:00")),
        ("2026-03-01T10:00:00Z\\n", at("10:00")),
        ("٢٠٢٦-03-01T10:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-01:00", None),
    ],
)
def test_iso_times_carry_their_offset(text: str, expected: datetime | None) -> None:
    (row,) = derive(arrive(f'{{"id": "a", "at": "{text}"}}'.encode()), RULES).bronze
    assert row["reason"] == ("unparsable_time" if expected is None else None)
    assert row["event_time"] == expected


@pytest.mark.parametrize(
    ("time_format", "text", "expected"),
    [
        ("epoch_seconds", "1772359200", at("10:00")),
        ("epoch_millis", "1772359200500", at("10:00:00.5")),
        ("epoch_seconds", "-61851600000", datetime(10, 1, 1, tzinfo=UTC)),
        ("epoch_seconds", "-61851600001", None),
        ("epoch_millis", "253402300800000", None),
        ("epoch_seconds", "1772359200.0", at("10:00")),
        ("epoch_seconds", "1772359200.5", None),
        ("epoch_seconds", '"1772359200"', None),
        ("epoch_seconds", "1e9", datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)),
        ("epoch_seconds", "true", None),
        ("epoch_seconds", "9" * 5000, None),
    ],
)
def test_epoch_times(time_format: str, text: str, expected: datetime | None) -> None:
    schema = {"id": "string", "at": "string"}
    rules = replace(RULES, time_format=time_format, schema=schema, gold={})
    (row,) = derive(arrive(f'{{"id": "a", "at": {text}}}'.encode()), rules).bronze
    assert row["reason"] == ("unparsable_time" if expected is None else None)
    assert row["event_time"] == expected


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("string", '"tea"', "tea"),
        ("string", "1.50", "1.5"),
        ("string", "-1E+5", "-100000.0"),
        ("string", "-1.250e7", "-1.25E7"),
        ("string", "0.0001", "1.0E-4"),
        ("string", "-0.0", "-0.0"),
        ("string", "1e999", "wrong"),
        ("string", "12345678901234567890123", "12345678901234567890123"),
        ("string", "-0", "0"),
        ("string", "false", "false"),
        ("string", "null", None),
        ("string", '"\\ud83c\\udf75"', "🍵"),
        ("string", '"\\ud83c"', "?"),
        ("string", "{}", "wrong"),
        ("string", "[]", "wrong"),
        ("boolean", "true", True),
        ("boolean", '"true"', "wrong"),
        ("boolean", "1", "wrong"),
        ("tinyint", "127", 127),
        ("tinyint", "128", "wrong"),
        ("smallint", "-32768", -32768),
        ("smallint", "-32769", "wrong"),
        ("int", "2147483647", 2147483647),
        ("int", "2147483648", "wrong"),
        ("bigint", "-9223372036854775808", -(1 << 63)),
        ("bigint", "9223372036854775808", "wrong"),
        ("bigint", "9" * 5000, "wrong"),
        ("bigint", "1.0", 1),
        ("bigint", "1.5", "wrong"),
        ("bigint", "9007199254740992.0", "wrong"),
        ("bigint", "1e2", 100),
        ("bigint", '"1"', "wrong"),
        ("bigint", "true", "wrong"),
        ("bigint", "-0", 0),
        ("double", "1e308", 1e308),
        ("double", "1e309", "wrong"),
        ("double", "1e-999", 0.0),
        ("double", '"1.0"', "wrong"),
        ("float", "0.1", 0.10000000149011612),
        ("float", "1e39", "wrong"),
        ("decimal(5,2)", "1.005", Decimal("1.01")),
        ("decimal(5,2)", "-1.005", Decimal("-1.01")),
        ("decimal(5,2)", '"12.3"', Decimal("12.30")),
        ("decimal(5,2)", "1e2", Decimal("100.00")),
        ("decimal(5,2)", "999.99", Decimal("999.99")),
        ("decimal(5,2)", "999.995", "wrong"),
        ("decimal(5,2)", "1e999999999999", "wrong"),
        ("decimal(5,2)", "1e-999999999999", Decimal("0.00")),
        ("decimal(5,2)", '"1e2"', Decimal("100.00")),
        ("decimal(5,2)", '" 1"', Decimal("1.00")),
        ("decimal(5,2)", '"1,5"', "wrong"),
        ("decimal(5,2)", "true", "wrong"),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("date", '"2024-02-29"', date(2024, 2, 29)),
        ("date", '"2026-02-29"', "wrong"),
        ("date", '"2026-2-9"', "wrong"),
        ("date", '"20260209"', "wrong"),
        ("date", "20260209", "wrong"),
        ("timestamp", '"2026-03-01T11:00:00+01:00"', at("10:00")),
        ("timestamp", '"2026-03-01"', "wrong"),
    ],
)
def test_types_never_guess(type_: str, text: str, expected: Any) -> None:
    assert typed_as(type_, text) == expected


def test_an_absent_column_is_null() -> None:
    (row,) = derive(arrive(order("a", "10:00")), RULES).silver["orders"]
    assert row == {
        "id": "a",
        "item": None,
        "amount": None,
        "at": at("10:00"),
        "_event_id": "a",
        "_partition": 0,
        "_offset": 0,
        "_item": 0,
        "_clock": None,
        "_event_time": at("10:00"),
    }


def test_an_id_of_several_columns_is_a_json_array_of_texts() -> None:
    rules = replace(RULES, event_id=("item", "amount"))
    values = [order("x", "10:00", item='a"é', amount=5), order("x", "10:00", item="a")]
    rows = derive(arrive(*values), rules).bronze
    assert column(rows, "event_id", "reason") == [('["a\\"é","5"]', None), (None, "missing_id")]


def test_the_position_is_the_id_where_none_is_declared_and_nothing_is_a_duplicate() -> None:
    tables = derive(arrive(GOOD, GOOD, b"?"), replace(RULES, event_id=()))
    ids = column(tables.bronze, "event_id", "duplicate")
    assert ids == [("0:0", False), ("0:1", False), ("0:2", False)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("ignore", (None, None)), ("rescue", (None, None)), ("quarantine", ("unknown_field", None))],
)
def test_unknown_fields(policy: str, expected: tuple[str | None, str | None]) -> None:
    rules = replace(RULES, unknown_fields=policy)
    value = order("a", "10:00", Item="TEA")
    assert reason(value, rules) == expected
    assert reason(order("a", "10:00", new=1, amount="x"), rules) == ("wrong_type", "amount")


def test_rescued_fields_keep_their_json_text() -> None:
    rules = replace(RULES, unknown_fields="rescue")
    value = GOOD[:-1] + b', "size": {"cm": 1.50, "ok": [true, null, "\\u00e9"]}}'
    rows = derive(arrive(value, order("b", "10:00")), rules).silver["orders"]
    assert column(rows, "_rescued") == ['{"size":{"cm":1.50,"ok":[true,null,"é"]}}', None]


def test_each_record_is_future_by_the_time_its_own_file_was_seen() -> None:
    early = arrive(order("a", "11:30"), seen=at("10:00"))
    assert derive(early, RULES).bronze[0]["reason"] == "future"
    rules = replace(RULES, future_after=timedelta(hours=2))
    assert derive(early, rules).bronze[0]["reason"] is None
