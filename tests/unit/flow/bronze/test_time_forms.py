"""Times of every declared form: what is read, as which instant, and what a detail says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.declaration.model import Column, EventTime, OnAmbiguous, Record, TimeForm
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import TIMESTAMP
from headgate.flow.bronze.decoding.event_times import ISO, text_reader
from tests.support.decoding import decoded

PARIS = TimeForm("yyyy-MM-dd HH:mm", "Europe/Paris")


def read(text: str, form: TimeForm = ISO) -> str | None:
    """A time in UTC, None if it is not of the form."""
    time = text_reader(form)(text)
    if time is None:
        return None
    at = datetime.fromtimestamp(time.micros // 1_000_000, UTC).replace(tzinfo=None)
    return f"{at.replace(microsecond=time.micros % 1_000_000).isoformat(' ')}{time.more}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T10:00Z", "2026-01-31 10:00:00"),  # Instant and OffsetDateTime of Java
        ("2026-01-31T10:00:00.123456789Z", "2026-01-31 10:00:00.123456789"),
        ("2026-01-31T10:00+01:00[Europe/Paris]", "2026-01-31 09:00:00"),
        ("2026-01-31T10:00:00.123456+00:00", "2026-01-31 10:00:00.123456"),  # Python
        ("2026-01-31T10:00:00.000Z", "2026-01-31 10:00:00"),  # JavaScript
        ("2026-01-31T10:00:00.5-07:00", "2026-01-31 17:00:00.500000"),  # Go
        ("2026-01-31T10:00:00.1234567+00:00", "2026-01-31 10:00:00.1234567"),  # .NET
        ("2026-01-31 10:00:00+00", "2026-01-31 10:00:00"),  # PostgreSQL
        ("1890-01-01 00:00:00+00:09:21", "1889-12-31 23:50:39"),
        ("2026-01-31 10:00:00.123456 UTC", "2026-01-31 10:00:00.123456"),  # BigQuery
        ("2026-01-31 10:00:00 +0100", "2026-01-31 09:00:00"),  # Ruby
        ("2026-01-31t10:00:00z", "2026-01-31 10:00:00"),  # RFC 3339
        ("2026-01-31T10:00:00,123Z", "2026-01-31 10:00:00.123000"),
        ("2026-01-31T10:00:00-00:00", "2026-01-31 10:00:00"),
        ("2026-01-31T10:00:00+14:00", "2026-01-30 20:00:00"),
        ("2026-01-31T10:00:00", None),
        ("2016-12-31T23:59:60Z", None),
        ("2026-01-31T24:00:00Z", None),
        ("2026-W05-6T10:00:00Z", None),
        ("2026-031T10:00:00Z", None),
        ("20260131T100000Z", None),
        ("2026-01-31T10:00:00+19:00", None),
    ],
)
def test_iso_times_as_real_systems_write_them(text: str, expected: str | None) -> None:
    assert read(text) == expected


def test_with_a_zone_an_iso_time_may_lack_its_offset() -> None:
    form = TimeForm(zone="Europe/Paris")
    assert read("2026-01-31T10:00:00", form) == "2026-01-31 09:00:00"
    assert read("2026-01-31 10:00", form) == "2026-01-31 09:00:00"
    assert read("2026-07-31T10:00:00.5", form) == "2026-07-31 08:00:00.500000"
    assert read("2026-01-31T10:00:00Z", form) == "2026-01-31 10:00:00"
    assert read("2026-01-31T10:00[Europe/Paris]", form) is None


@pytest.mark.parametrize(
    ("ambiguous", "expected"),
    [("earlier", "2026-10-25 00:30:00"), ("later", "2026-10-25 01:30:00"), ("quarantine", None)],
)
@pytest.mark.parametrize("format", ["yyyy-MM-dd HH:mm", "iso"])
def test_a_local_time_that_the_clocks_show_twice(
    ambiguous: OnAmbiguous, expected: str | None, format: str
) -> None:
    form = TimeForm(format, "Europe/Paris", ambiguous)
    assert read("2026-10-25 02:30", form) == expected
    # The times around it, and the one that is skipped in spring, have one instant.
    assert read("2026-10-25 01:59", form) == "2026-10-24 23:59:00"
    assert read("2026-10-25 03:00", form) == "2026-10-25 02:00:00"
    assert read("2026-03-29 02:30", form) == "2026-03-29 01:30:00"
    assert read("2026-03-29 03:30", form) == "2026-03-29 01:30:00"


@pytest.mark.parametrize(
    ("zone", "local", "earlier", "later"),
    [
        ("Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45", "2026-04-04 15:15"),
        ("America/Sao_Paulo", "2019-02-16 23:30", "2019-02-17 01:30", "2019-02-17 02:30"),
        ("America/Sao_Paulo", "2026-02-16 23:30", "2026-02-17 02:30", "2026-02-17 02:30"),
        ("Etc/GMT+5", "2026-10-25 02:30", "2026-10-25 07:30", "2026-10-25 07:30"),
        ("Africa/Monrovia", "1960-01-01 00:00", "1960-01-01 00:44:30", "1960-01-01 00:44:30"),
    ],
)
def test_the_rules_of_zones(zone: str, local: str, earlier: str, later: str) -> None:
    for ambiguous, expected in (("earlier", earlier), ("later", later)):
        form = TimeForm(PARIS.format, zone, ambiguous)  # type: ignore[arg-type]
        found = read(local, form)
        assert found is not None
        assert found.removesuffix(":00") == expected.removesuffix(":00")


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("epoch_seconds", "1772362800.123", "2026-03-01 11:00:00.123000"),
        ("epoch_seconds", "1.772362800123E9", "2026-03-01 11:00:00.123000"),
        ("epoch_seconds", "-1", "1969-12-31 23:59:59"),
        ("epoch_seconds", "1772362800000", None),
        ("epoch_seconds", "1e999", None),
        ("epoch_seconds", "1e-31", None),
        ("epoch_seconds", " 1", "1970-01-01 00:00:01"),
        ("epoch_seconds", "+1", None),
        ("epoch_seconds", "NaN", None),
        ("epoch_millis", "1772362800123", "2026-03-01 11:00:00.123000"),
        ("epoch_micros", "1772362800123456", "2026-03-01 11:00:00.123456"),
        ("epoch_nanos", "1772362800123456789", "2026-03-01 11:00:00.123456789"),
        ("epoch_nanos", "-1", "1969-12-31 23:59:59.999999999"),
    ],
)
def test_epochs_are_read_exactly(format: str, text: str, expected: str | None) -> None:
    assert read(text, TimeForm(format)) == expected


def rows(record: Record, *values: object) -> list[Any]:
    """The rows of records with these event times. They are the same if each is validated."""
    texts: list[bytes | None] = [json.dumps({"at": each}).encode() for each in values]
    found = decoded(record, texts)
    assert found == decoded(record, texts, all_validated=True)
    return found


def of_time(type_: str, form: TimeForm) -> Record:
    time = EventTime("at", form.format, form.zone, form.ambiguous)
    return Record((), time, (Column("at", parse_type(type_)),))


def test_event_times_of_each_type_and_format() -> None:
    eleven = datetime(2026, 3, 1, 11, tzinfo=UTC)
    for type_, form, value in (
        ("timestamp", TimeForm(zone="Europe/Paris"), "2026-03-01T12:00:00"),
        ("string", TimeForm(zone="Europe/Paris"), "2026-03-01T12:00:00.0"),
        ("timestamp", PARIS, "2026-03-01 12:00"),
        ("string", PARIS, "2026-03-01 12:00"),
        ("timestamp", TimeForm("epoch_seconds"), 1772362800),
        ("timestamp", TimeForm("epoch_seconds"), "1772362800.0"),
        ("timestamp", TimeForm("epoch_millis"), 1772362800000),
        ("bigint", TimeForm("epoch_micros"), 1772362800000000),
        ("bigint", TimeForm("epoch_nanos"), 1772362800000000999),
    ):
        (row,) = rows(of_time(type_, form), value)
        assert (row["reason"], row["event_time"].replace(microsecond=0)) == (None, eleven)


_ISO = "ISO 8601 with an offset, such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00+01:00"


@pytest.mark.parametrize(
    ("type_", "form", "value", "detail"),
    [
        (
            "timestamp",
            TimeForm(),
            "2026-03-01T11:00:00",
            f'at is not {_ISO}: "2026-03-01T11:00:00" '
            "(it has no offset: add the key zone beside its format, such as zone: UTC)",
        ),
        (
            "timestamp",
            TimeForm(),
            1772362800000,
            f"at is not {_ISO}: 1772362800000 (it looks like epoch_millis: see the key format)",
        ),
        (
            "bigint",
            TimeForm("epoch_seconds"),
            1772362800000,
            "at is not a whole number of seconds since 1970 UTC, in the years 10 to 9989: "
            "1772362800000 (it looks like epoch_millis: see the key format)",
        ),
        (
            "timestamp",
            TimeForm("yyyy-MM-dd HH:mm", "Europe/Paris", "quarantine"),
            "2026-10-25 02:30",
            'at is not a time of the form yyyy-MM-dd HH:mm: "2026-10-25 02:30" '
            "(the clocks of Europe/Paris show this time twice)",
        ),
        (
            "timestamp",
            TimeForm(),
            "0001-01-01T00:00:00Z",
            'at is not in the year 10 or later: "0001-01-01T00:00:00Z"',
        ),
    ],
)
def test_a_detail_says_what_a_time_probably_is(
    type_: str, form: TimeForm, value: object, detail: str
) -> None:
    (row,) = rows(of_time(type_, form), value)
    assert (row["reason"], row["reason_detail"]) == ("unparsable_time", detail)


def test_timestamps_of_any_column_have_its_form() -> None:
    schema = (
        Column("at", TIMESTAMP),
        Column("seen", parse_type("array<struct<t: timestamp>>"), None, TimeForm("epoch_millis")),
        Column("local", TIMESTAMP, None, TimeForm(zone="Asia/Tokyo")),
    )
    record = Record((), EventTime("at"), schema)
    good: dict[str, object] = {
        "seen": [{"t": 1772362800000}, {"t": "1772362800000.5"}, {}],
        "local": "2026-03-01T20:00",
    }
    bad: list[dict[str, object]] = [{"seen": [{"t": "noon"}]}, {"local": 7}]
    values: list[bytes | None] = [
        json.dumps({"at": "2026-03-01T11:00:00Z"} | each).encode() for each in (good, *bad)
    ]
    found = decoded(record, values)
    assert found == decoded(record, values, all_validated=True)
    eleven = datetime(2026, 3, 1, 11, tzinfo=UTC)
    times = [eleven, eleven.replace(microsecond=500), None]
    assert found[0]["record"]["seen"] == [{"t": time} for time in times]
    assert found[0]["record"]["local"] == eleven
    assert [row["reason_column"] for row in found] == [None, "seen", "local"]
    assert found[1]["reason_detail"] == (
        'seen[0].t is not a number of milliseconds since 1970 UTC, in the years 1 to 9999: "noon"'
    )


def test_local_times_of_a_block_are_read_as_one_by_one() -> None:
    """Those of a block are read together, and each offset is looked up once."""
    days = [f"2026-{month:02}-25T0{hour}:30:00" for month in (3, 10) for hour in range(5)]
    texts = [f"{day}{end}" for day in days for end in ("", ".25", "Z", "x")] + [
        "2026-03-29T02:30:00"
    ]
    for ambiguous in ("earlier", "later", "quarantine"):
        form = TimeForm("iso", "Europe/Paris", ambiguous)
        found = rows(of_time("string", form), *texts)
        read_alone = [text_reader(form)(text) for text in texts]
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        assert [
            row["event_time"] and round((row["event_time"] - epoch).total_seconds() * 1_000_000)
            for row in found
        ] == [time and time.micros for time in read_alone]


def test_a_whole_number_of_a_column_of_text_can_be_a_pattern() -> None:
    record = of_time("timestamp", TimeForm("yyyyMMdd", "UTC"))
    (row,) = rows(record, 20260301)
    assert row["event_time"] == datetime(2026, 3, 1, tzinfo=UTC)
