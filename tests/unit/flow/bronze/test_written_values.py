"""One rule for the values of all formats: what a cell of CSV is, is what a JSON value is."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from math import inf, isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.declaration.model import Column, EventTime, Record, RecordFormat
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import STRING, TIMESTAMP
from tests.support.decoding import decoded

AT = "2026-03-01T11:40:00Z"


def record(type_: str, *ids: str) -> Record:
    columns = (Column("id", STRING), Column("at", TIMESTAMP), Column("it", parse_type(type_)))
    return Record(ids or ("id",), EventTime("at"), columns)


def rows(type_: str, texts: list[str], format: RecordFormat, *ids: str) -> list[dict[str, Any]]:
    """The decoded rows of JSON values, which for CSV are cells; the validator reads the same."""
    head = f'{{"id": "a", "at": "{AT}", "it": '
    values: list[bytes | None] = [f"{head}{text}}}".encode() for text in texts]
    found = decoded(record(type_, *ids), values, format=format)
    again = decoded(record(type_, *ids), values, format=format, all_validated=True)
    assert repr(found) == repr(again)  # NaN does not equal itself
    return found


def values(type_: str, texts: list[str], format: RecordFormat = "json") -> list[object]:
    """The values; "wrong" for those of the wrong type."""
    found = rows(type_, texts, format)
    assert {row["reason"] for row in found} <= {None, "wrong_type"}
    return ["wrong" if row["reason"] else row["record"]["it"] for row in found]


def cells(type_: str, cells: list[str]) -> list[object]:
    return values(type_, [json.dumps(cell) for cell in cells], "csv")


@pytest.mark.parametrize(
    ("type_", "numbers"),
    [
        (
            "int",
            {
                "12": 12,
                "-7": -7,
                "-0": 0,
                "2147483647": 2147483647,
                "-2147483648": -(2**31),
                "3.0": 3,
                "3.000": 3,
                "1e3": 1000,
                "2.5e1": 25,
                "-0.0": 0,
                "0e9": 0,
                "2.7": "wrong",
                "2147483648": "wrong",
                "2147483648.0": "wrong",
                "1e99": "wrong",
                "1e-400": 0,
            },
        ),
        ("tinyint", {"127": 127, "128": "wrong", "-128.0": -128, "-129": "wrong", "1.5": "wrong"}),
        (
            "bigint",
            {
                "9223372036854775807": 2**63 - 1,
                "9223372036854775808": "wrong",
                # Several integers have one double from here on.
                "9007199254740991.0": 2**53 - 1,
                "9007199254740992.0": "wrong",
                "9007199254740993": 2**53 + 1,
                "123456789012345678.0": "wrong",
                "1e15": 10**15,
                "1e18": "wrong",
                "0.5": "wrong",
            },
        ),
        (
            "double",
            {
                "12": 12.0,
                "2.7": 2.7,
                "-0": 0.0,
                "1e308": 1e308,
                "1e-400": 0.0,
                "0.30000000000000004": 0.30000000000000004,
                "1e-05": 1e-05,
                "9007199254740993": 9007199254740992.0,
            },
        ),
        ("float", {"0.1": 0.10000000149011612, "3.4028236e38": "wrong", "1e39": "wrong"}),
        (
            "decimal(5,2)",
            {
                "1.005": Number("1.01"),
                "1e2": Number("100.00"),
                "-0": Number("0.00"),
                "999.995": "wrong",
                "1e999": "wrong",
                "1e-999999999999": Number("0.00"),
            },
        ),
    ],
)
def test_a_number_is_the_same_in_json_and_csv(type_: str, numbers: dict[str, object]) -> None:
    for texts in ([*numbers], *([text] for text in numbers)):
        expected = [numbers[text] for text in texts]
        assert values(type_, texts) == expected
        assert cells(type_, texts) == expected


def test_a_number_beyond_a_double_is_refused() -> None:
    assert cells("double", ["1e400", "-1e400", "1" * 400, "1" * 6_000]) == ["wrong"] * 4
    assert values("double", ["1e400", "-1e400", "1" * 400]) == ["wrong"] * 3


WRITTEN = ["007", "-007.50", "0012.0", " 5", "5\t", "\n5\r\n\f\v"]
NO_NUMBERS = ["+5", ".5", "5.", "1_000", "1,5", "0x10", "10D", "1f", "\u0665", "\uff11", "\xa05"]
NO_NUMBERS += ["5 5", "- 5", "e5", "1e", "--5", "", "1 e5", "5\0", "0b1", "1e5.5", "$5", "5%"]


@pytest.mark.parametrize("type_", ["int", "bigint", "double", "float", "decimal(9,3)"])
def test_a_cell_is_a_number_as_json_writes_it(type_: str) -> None:
    """Zeros at its beginning and blanks around it do not count; nothing is guessed."""
    is_whole = "int" in type_
    assert cells(type_, WRITTEN) == [7, "wrong" if is_whole else -7.5, 12, 5, 5, 5]
    assert cells(type_, NO_NUMBERS) == ["wrong"] * len(NO_NUMBERS)
    assert cells(type_, ["NaN", "true"])[1] == "wrong"


def test_a_number_in_quotes_is_a_decimal_by_the_same_rule() -> None:
    texts = [*WRITTEN, "1e2", "1E-1", "-12.50"]
    expected = [7, Number("-7.5"), 12, 5, 5, 5, 100, Number("0.1"), Number("-12.5")]
    quoted = [json.dumps(text) for text in texts]
    assert values("decimal(9,3)", quoted) == expected
    assert cells("decimal(9,3)", texts) == expected
    assert values("decimal(9,3)", [*map(json.dumps, NO_NUMBERS)]) == ["wrong"] * len(NO_NUMBERS)
    for type_ in ("int", "double", "float"):
        assert values(type_, quoted) == ["wrong"] * len(quoted)


def test_the_spellings_of_a_boolean_are_few() -> None:
    assert cells("boolean", ["true", "True", "TRUE", "t", " T ", "false", "F\n"]) == (
        [True] * 5 + [False] * 2
    )
    assert cells("boolean", ["1", "0", "yes", "n", "on", "1.0", "tru", "t f"]) == ["wrong"] * 8
    assert values("boolean", ["true", "false", "1", '"true"', '"t"']) == (
        [True, False, "wrong", "wrong", "wrong"]
    )


def test_not_a_number_and_infinities_have_names_in_csv_and_parquet() -> None:
    names = ["NaN", "nan", "Infinity", "inf", "INF", "-Infinity", "-inf ", "+inf", "1.#INF", "N/A"]
    for type_ in ("double", "float"):
        quoted = [*map(json.dumps, names)]
        assert values(type_, quoted) == ["wrong"] * len(names)
        for found in (cells(type_, names), values(type_, quoted, "parquet")):
            assert [isnan(each) for each in found[:2]] == [True, True]  # type: ignore[arg-type]
            assert found[2:] == [inf, inf, inf, -inf, -inf, "wrong", "wrong", "wrong"]
    assert cells("decimal(9,3)", names) == cells("int", names) == ["wrong"] * len(names)


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_blanks_around_dates_and_times_do_not_count(format: RecordFormat) -> None:
    def read(type_: str, *texts: str) -> list[object]:
        return values(type_, [*map(json.dumps, texts)], format)

    day = date(2026, 3, 1)
    assert read("date", "2026-03-01", " 2026-03-01", "2026-03-01\t\r\n") == [day] * 3
    assert read("date", "2026-3-1", "2026-03 -01", "\xa02026-03-01") == ["wrong"] * 3
    at = datetime(2026, 3, 1, 11, 40, tzinfo=UTC)
    assert read("timestamp", AT, f" {AT}", f"{AT}\n", f"\t{AT} \f") == [at] * 4
    assert read("timestamp", f"\u2003{AT}", "2026-03-01") == ["wrong"] * 2


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (EventTime("it"), " 2026-03-01T11:40:00Z\r\n"),
        (EventTime("it", "yyyy-MM-dd HH:mm", "UTC"), "\t2026-03-01 11:40 "),
        (EventTime("it", "epoch_seconds"), " 1772365200 "),
    ],
)
def test_blanks_around_an_event_time_do_not_count(
    format: RecordFormat, rule: EventTime, text: str
) -> None:
    type_ = "string" if "MM" in rule.format else "timestamp"
    given = Record(("id",), rule, (Column("id", STRING), Column("it", parse_type(type_))))
    (row,) = decoded(given, [json.dumps({"id": "a", "it": text}).encode()], format=format)
    assert (row["reason"], row["event_time"]) == (None, datetime(2026, 3, 1, 11, 40, tzinfo=UTC))
    if type_ == "string":
        assert row["record"]["it"] == text


def test_a_corrected_cell_may_be_any_json_value() -> None:
    assert values("int", ["7", "7.0", '"7"', "null", "[7]", "true"], "csv") == [
        *(7, 7, 7, None, "wrong", "wrong")
    ]
    assert values("boolean", ["true", "1"], "csv") == [True, "wrong"]
    assert values("string", ["7", '"7"', "1.50"], "csv") == ["7", "7", "1.5"]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_id_is_the_whole_number_that_is_meant(format: RecordFormat) -> None:
    texts = ["7", "7.0", "7e0", "7.0000000000000000001", "7.5", "null"]
    if format == "csv":
        texts = [*map(json.dumps, [*texts[:-1], " 007 "])]
    ids = [row["event_id"] for row in rows("bigint", texts, format, "it")]
    assert ids == ["7", "7", "7", None, None, "7" if format == "csv" else None]
    days = [f'"{blank}2026-03-01{blank}"' for blank in ("", " ")]
    assert {row["event_id"] for row in rows("date", days, format, "it")} == {"2026-03-01"}


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_an_empty_text_is_no_id_and_no_part_of_one(format: RecordFormat) -> None:
    texts = ['""', '" "', '"a"', "null"]
    found = [(row["event_id"], row["reason"]) for row in rows("string", texts, format, "it")]
    none = (None, "missing_id")
    assert found == [none, (" ", None), ("a", None), none]
    found = [(row["event_id"], row["reason"]) for row in rows("string", texts, format, "id", "it")]
    assert found == [none, ('["a"," "]', None), ('["a","a"]', None), none]


DIGITS = st.text("0159", max_size=9)
NUMBERS = st.builds(
    "{}{}{}{}{}".format,
    *(st.sampled_from(["", "-", "+", " "]), DIGITS),
    *(st.sampled_from(["", ".", "."]), DIGITS),
    st.sampled_from(["", "", "e5", "E-7", "e+400", "D", " "]),
)
SCALARS = ("int", "tinyint", "bigint", "double", "float", "decimal(9,3)", "decimal(3,3)", "boolean")


@pytest.mark.slow
@given(st.sampled_from(SCALARS), st.lists(NUMBERS | st.text(max_size=4), min_size=1, max_size=9))
def test_a_cell_is_a_json_value_of_its_type_or_of_none(type_: str, texts: list[str]) -> None:
    """Also, the shortcuts for whole columns agree with the rule (``rows``)."""
    found = cells(type_, texts)
    for text, value in zip(texts, found, strict=True):
        try:
            written = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if written is None:  # a cell with this text has a value
            continue
        if not isinstance(written, str | float) or abs(written) < 1e300:  # type: ignore[arg-type]
            (same,) = values(type_, [text])
            assert repr(value) == repr(same), text
