"""Ids are made of all digits of a value: those that a column does not keep count, too."""

from __future__ import annotations

import pytest

from headgate.declaration.model import Column, EventTime, Record, RecordFormat, TimeForm
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import TIMESTAMP
from headgate.flow.bronze.decoding.event_times import ISO
from tests.support.decoding import decoded

AT = '"at": "2026-03-01T11:00:00Z"'


def ids(
    type_: str, *texts: str, times: TimeForm = ISO, format: RecordFormat = "json"
) -> list[str | None]:
    """The ids of records with these JSON texts. They are the same if every record is validated."""
    schema = (Column("key", parse_type(type_), None, times), Column("at", TIMESTAMP))
    record = Record(("key",), EventTime("at"), schema)
    values: list[bytes | None] = [f'{{{AT}, "key": {text}}}'.encode() for text in texts]
    rows = decoded(record, values, format=format)
    assert rows == decoded(record, values, format=format, all_validated=True)
    assert [row["reason"] for row in rows] == [
        None if row["event_id"] is not None else "missing_id" for row in rows
    ]
    return [row["event_id"] for row in rows]


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_a_number_in_a_column_of_text(format: RecordFormat) -> None:
    assert ids("string", "7", "1.50", "1.5", "15e-1", "1e7", "0.1", "-0.0", format=format) == [
        *("7", "1.5", "1.5", "1.5", "1.0E7", "0.1", "-0.0"),
    ]
    assert ids(
        "string",
        *("12345678901234567890", "0.12345678901234567", "0.123456789012345678"),
        *("1234567890.123456789012", "1234567890.1234567890120", "1e-400", "1e400"),
        format=format,
    ) == [
        *("12345678901234567890", "0.12345678901234567", "0.123456789012345678"),
        *("1234567890.123456789012", "1234567890.123456789012", "1E-400", None),
    ]


def test_a_text_is_its_own_id() -> None:
    assert ids("string", '"1.50"', '" a"', '"2026-03-01T11:00:00.000Z"', "true") == [
        *("1.50", " a", "2026-03-01T11:00:00.000Z", "true"),
    ]


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_decimal(format: RecordFormat) -> None:
    texts = ["1.5", "1.50", "1.500", "1.505", "1.5050", "1.51", "0.0000001", "-0.001"]
    found = ids("decimal(6,2)", *(f'"{text}"' for text in texts), format=format)
    assert found == ["1.50", "1.50", "1.50", "1.505", "1.505", "1.51", "1E-7", "-0.001"]
    if format != "csv":
        assert ids("decimal(6,2)", *texts, "15e-1", "1505e-3", format=format) == [
            *found,
            "1.50",
            "1.505",
        ]


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_an_instant(format: RecordFormat) -> None:
    texts = ["00.123456Z", "00.1234560Z", "00.1234567Z", "00.12345670000Z", "00,123456789Z", "00Z"]
    found = ids("timestamp", *(f'"2026-03-01T11:00:{text}"' for text in texts), format=format)
    hour = "2026-03-01 11:00:00"
    assert found == [
        *(f"{hour}.123456", f"{hour}.123456", f"{hour}.1234567", f"{hour}.1234567"),
        *(f"{hour}.123456789", hour),
    ]


def test_an_instant_by_a_pattern() -> None:
    times = TimeForm("yyyyMMddHHmmssSSSSSSSSS", "UTC")
    found = ids("timestamp", '"20260301110000123456000"', '"20260301110000123456001"', times=times)
    assert found == ["2026-03-01 11:00:00.123456", "2026-03-01 11:00:00.123456001"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_the_number_of_an_epoch(quote: str) -> None:
    def of(format: str, *numbers: str) -> list[str | None]:
        texts = [f"{quote}{number}{quote}" for number in numbers]
        return ids("timestamp", *texts, times=TimeForm(format))

    hour = "2026-03-01 11:00:00"
    assert of("epoch_seconds", "1772362800", "1772362800.000", "1.7723628E9") == [hour] * 3
    assert of("epoch_seconds", "1772362800.1234567", "-0.5") == [
        *(f"{hour}.1234567", "1969-12-31 23:59:59.5"),
    ]
    assert of("epoch_millis", "1772362800000", "1772362800000.0001") == [hour, f"{hour}.0000001"]
    assert of("epoch_nanos", "1772362800000000000", "1772362800000000001", "-1") == [
        *(hour, f"{hour}.000000001", "1969-12-31 23:59:59.999999999"),
    ]


def test_two_events_that_a_column_cannot_tell_apart_are_two_ids() -> None:
    for type_, texts in {
        "timestamp": ('"2026-03-01T11:00:00.0000001Z"', '"2026-03-01T11:00:00.0000002Z"'),
        "decimal(9,2)": ("1.001", "1.002"),
        "string": ("1.00000000000000000001", "1.00000000000000000002"),
    }.items():
        first, second = ids(type_, *texts)
        assert first != second
