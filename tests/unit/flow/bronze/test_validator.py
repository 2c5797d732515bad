"""What the validator decides about a record, from its bytes alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headgate.declaration.model import Column, EventTime, Record
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import STRING, TIMESTAMP
from headgate.flow.bronze.decoding.validator import RecordValidator, ValidationResult
from headgate.flow.bronze.reasons import Reason

RECORD = Record(
    event_id=("id",),
    event_time=EventTime(column="at"),
    schema=(Column("id", STRING), Column("at", TIMESTAMP), Column("it", STRING)),
)
RESCUE = replace(RECORD, unknown_fields="rescue")
HEAD = b'{"id": "a", "at": "2026-03-01T11:40:00Z", '
VALID = ValidationResult()
UNPARSABLE = ValidationResult(Reason.UNPARSABLE)


def validated(value: bytes, record: Record = RECORD) -> ValidationResult:
    """The result of the validator without the id, the time and the fields of the record."""
    found = RecordValidator(record, "json").validate(value)
    return replace(found, id=None, time=None, fields=None)


def result(field: bytes, record: Record = RECORD) -> ValidationResult:
    return validated(HEAD + field + b"}", record)


def fits(type_: str, text: str) -> bool:
    typed = replace(RECORD, schema=(*RECORD.schema[:2], Column("it", parse_type(type_))))
    found = result(f'"it": {text}'.encode(), typed)
    assert (found.reason, found.column) in ((None, None), (Reason.WRONG_TYPE, "it"))
    return found == VALID


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (b'"x": ' + b"[" * 499 + b"]" * 499, VALID),
        (b'"x": ' + b"[" * 500 + b"]" * 500, UNPARSABLE),
        (b'"x": ' + b"[" * 5000 + b"]" * 5000, UNPARSABLE),
        (b'"x": ' + b"[" * 500 + b"]" * 500 + b', "x": 1', UNPARSABLE),
        (b'"x": [' + b"[]," * 600 + b"{}]", VALID),
        (b'"x": "' + b"{" * 600 + b'\\"["', VALID),
        (b'"x": -' + b"7" * 5000, VALID),
        (b'"x": ' + b"7" * 5001, UNPARSABLE),
        (b'"x": 0.' + b"7" * 4999, VALID),
        (b'"x": 0.' + b"7" * 4999 + b"e1", UNPARSABLE),
        (b'"' + b"n" * 50_000 + b'": 1', VALID),
        (b'"' + b"n" * 50_001 + b'": 1', UNPARSABLE),
    ],
)
def test_beyond_the_limits_a_record_is_unparsable(field: bytes, expected: ValidationResult) -> None:
    assert replace(result(field), detail=None) == expected


@pytest.mark.parametrize(
    ("type_", "fit", "unfit"),
    [
        (
            "decimal(5,2)",
            ["1e2", "1e-999999999999", "0e99999", '"12.3"', '"007"', '"1e2"', '" 1"', "null"],
            ['"1,5"', '"+1"', '".5"', '"1."', '"１"', "999.995", "1e99999", "{}"],
        ),
        (
            "date",
            ['"2024-02-29"', '"0001-01-01"', '"2026-03-01\\n"'],
            ['"2026-3-1"', '"2026-03-01T00:00:00Z"', '"0000-01-01"', "20260301"],
        ),
        ("string", ["1.50", "true", '"x"', "1" * 400], ["{}", "[]", "1e400", "-1e400"]),
        ("float", ["3.4028235e38", "1e-400"], ["3.4028236e38", "-1e39", '"1"']),
        ("double", ["1e308"], ["1e309"]),
    ],
)
def test_types_never_guess(type_: str, fit: list[str], unfit: list[str]) -> None:
    assert [text for text in fit if not fits(type_, text)] == []
    assert [text for text in unfit if fits(type_, text)] == []


@pytest.mark.parametrize(
    ("type_", "text", "detail"),
    [
        ("string", b"1e400", "it is not of type string: 1e400"),
        ("date", b'"2026-3-1"', 'it is not a date such as 2026-01-31: "2026-3-1"'),
        ("decimal(5,2)", b'"1,5"', 'it is not of type decimal(5,2): "1,5"'),
        ("int", b"null", "it is missing or empty"),
    ],
)
def test_an_id_of_the_wrong_type_is_missing(type_: str, text: bytes, detail: str) -> None:
    typed = replace(
        RECORD, event_id=("it",), schema=(*RECORD.schema[:2], Column("it", parse_type(type_)))
    )
    assert result(b'"it": ' + text, typed) == ValidationResult(Reason.MISSING_ID, detail=detail)


PATTERN = "dd/MM/yyyy HH:mm"


@pytest.mark.parametrize(
    ("format", "detail"),
    [
        (
            "iso",
            "at is not ISO 8601 with an offset, such as 2026-01-31T12:00:00Z or "
            '2026-01-31 12:00:00+01:00: "tomorrow \\"?\\" noon"',
        ),
        (
            "epoch_millis",
            "at is not a number of milliseconds since 1970 UTC, in the years 10 to 9989: "
            '"tomorrow \\"?\\" noon"',
        ),
        (PATTERN, f'at is not a time of the form {PATTERN}: "tomorrow \\"?\\" noon"'),
    ],
)
def test_a_time_that_does_not_parse_is_shown_with_the_format_that_was_expected(
    format: str, detail: str
) -> None:
    value = rb'{"id": "a", "at": "tomorrow \"\ud800\" noon"}'
    record = replace(RECORD, event_time=EventTime(column="at", format=format))
    assert validated(value, record) == ValidationResult(Reason.UNPARSABLE_TIME, detail=detail)


def test_the_zero_time_of_other_languages_is_no_event_time() -> None:
    zero, first = (
        b'{"id": "a", "at": "%s"}' % t for t in (b"0001-01-01T00:00:00Z", b"0010-01-01T00:00:00Z")
    )
    detail = 'at is not in the year 10 or later: "0001-01-01T00:00:00Z"'
    assert validated(zero) == ValidationResult(Reason.UNPARSABLE_TIME, detail=detail)
    assert validated(first) == ValidationResult()


@pytest.mark.parametrize(
    ("type_", "text", "detail"),
    [
        ("int", '"many"', 'it is not of type int: "many"'),
        ("date", "20260209", "it is not a date such as 2026-01-31: 20260209"),
        ("int", "[" + "1.50, " * 40 + "1]", f"it is not of type int: [{'1.50, ' * 13}1..."),
    ],
)
def test_a_value_of_the_wrong_type_is_shown_as_far_as_it_fits(
    type_: str, text: str, detail: str
) -> None:
    typed = replace(RECORD, schema=(*RECORD.schema[:2], Column("it", parse_type(type_))))
    assert result(f'"it": {text}'.encode(), typed).detail == detail


def test_the_first_fields_that_nobody_declared_are_named() -> None:
    refusing = replace(RECORD, unknown_fields="quarantine")
    assert result(b'"x": 1, "\\ud800": 2', refusing).detail == "not declared: x, ?"
    many = b", ".join(b'"f%d": 1' % number for number in range(7))
    assert result(many, refusing).detail == "not declared: f0, f1, f2, f3, f4, ..."


@pytest.mark.parametrize(
    ("field", "rescued"),
    [
        (b'"x": 1.50, "y": [true, null, "\\u00e9"]', '{"x": 1.50, "y": [true, null, "é"]}'),
        (b'"x": 123456789012345678901234567890', '{"x": 123456789012345678901234567890}'),
        (b'"x": {"a": 1e400}', '{"x": {"a": 1e400}}'),
        (b'"x": "\\ud800", "\\ud800": 1', '{"x": "?", "?": 1}'),
    ],
)
def test_rescued_fields_keep_their_json_text(field: bytes, rescued: str) -> None:
    assert result(field, RESCUE) == ValidationResult(rescued=rescued)


def test_what_is_as_deep_as_may_be_is_rescued() -> None:
    deep = b'{"a": [' * 249 + b"[]" + b"]}" * 249
    rescued = result(b'"x": ' + deep, RESCUE).rescued
    assert rescued is not None
    assert json.loads(rescued)["x"] == json.loads(deep)


@pytest.mark.parametrize("half", ["\\ud800", "a\\udc00", "\\ude00\\ud83d"])
def test_half_of_a_surrogate_pair_is_no_id(half: str) -> None:
    """As text it becomes a question mark, so different ids would become equal."""
    value = f'{{"id": "{half}", "at": "2026-03-01T11:40:00Z"}}'.encode()
    found = RecordValidator(RECORD, "json").validate(value)
    assert (found.reason, found.id) == (Reason.MISSING_ID, None)
    pair = replace(RECORD, event_id=("it", "id"))
    found = RecordValidator(pair, "json").validate(value[:-1] + b', "it": "x"}')
    assert found.reason == Reason.MISSING_ID


def test_a_surrogate_pair_is_an_id() -> None:
    value = b'{"id": "\\ud83d\\ude00", "at": "2026-03-01T11:40:00Z"}'
    assert RecordValidator(RECORD, "json").validate(value).id == "\U0001f600"


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(
    ("type_", "value"),
    [("double", '"{}"'), ("float", '"{}"'), ("array<double>", '[1, "{}"]')],
)
def test_a_number_that_json_has_not_is_one_of_parquet(text: str, type_: str, value: str) -> None:
    typed = replace(RECORD, schema=(*RECORD.schema[:2], Column("it", parse_type(type_))))
    given = HEAD + f'"it": {value.format(text)}'.encode() + b"}"
    found = RecordValidator(typed, "parquet").validate(given)
    assert found.reason is None
    assert found.fields is not None
    assert repr(float(text)) in str(found.fields["it"])
    assert RecordValidator(typed, "json").validate(given).reason == Reason.WRONG_TYPE


@pytest.mark.parametrize("type_", ["int", "decimal(8,2)", "boolean", "date"])
def test_such_a_number_is_of_no_other_type(type_: str) -> None:
    typed = replace(RECORD, schema=(*RECORD.schema[:2], Column("it", parse_type(type_))))
    found = RecordValidator(typed, "parquet").validate(HEAD + b'"it": "NaN"}')
    assert (found.reason, found.column) == (Reason.WRONG_TYPE, "it")
