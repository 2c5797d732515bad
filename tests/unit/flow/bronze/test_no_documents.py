"""What a person reads about a record that is no JSON object."""

from __future__ import annotations

import pytest

from headgate.declaration.model import Column, EventTime, Record
from headgate.declaration.types import STRING, TIMESTAMP
from headgate.flow.bronze.decoding.validator import RecordValidator
from headgate.flow.bronze.reasons import Reason

RECORD = Record(("id",), EventTime("at"), (Column("id", STRING), Column("at", TIMESTAMP)))
ONE = "a record is one whole document, in a file on one line"


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (b"", "it is empty"),
        (b'{"a": 1}{"b": 2}', f"another document follows, '{{\"b\": 2}}'; {ONE}"),
        (b'{"a": 1} [2]', f"another document follows, '[2]'; {ONE}"),
        (b"{", f"it ends within the document, '{{'; {ONE}"),
        (b" [\r", f"it ends within the document, ' [\\r'; {ONE}"),
        (b'  "a": 1,', f"a part of a document, '  \"a\": 1,'; {ONE}"),
        (b'"a",', f"a part of a document, '\"a\",'; {ONE}"),
        (b"}", f"a part of a document, '}}'; {ONE}"),
        (b"],", f"a part of a document, '],'; {ONE}"),
        (b'{"a": 1},', f"a comma follows the document; {ONE}, without commas between"),
        (b'{"a": "xy', f'it ends within the document, \'{{"a": "xy\'; {ONE}'),
        (b'{"a": 1}\x00', "text follows the document, '\\u0000'"),
        (b'{"a": 1} # no', "text follows the document, '# no'"),
        (b'\xef\xbb\xbf{"a": 1}', "a byte order mark is before the document; remove it"),
        ('{"a": 1}'.encode("utf-16"), "it is encoded in UTF-16; write UTF-8"),
        ('{"a": 1}'.encode("utf-16-be"), "it is encoded in UTF-16; write UTF-8"),
        (
            b"\0\0\0\0\x07abc",
            "it begins with the byte 0x00, as in the formats of a schema registry; write JSON",
        ),
        (b'{"a": "Z\xfcrich"}', 'not UTF-8: the byte 0xFC after \'{"a": "Z\''),
        (b"\x1f\x8b\x08", "not UTF-8: the byte 0x8B after '\\u001f'"),
        (b"{'a': 1}", "names and texts are not in double quotes at character 2, ''a': 1}'"),
        (b"{a: 1}", "a name without double quotes at character 2, 'a: 1}'"),
        (b'{"a": 1,}', "a comma before the end at character 9, '}'"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b'{"a": -Infinity}', "-Infinity is no JSON"),
        (b'{"a": True}', "no JSON at character 7, 'True'"),
        (b'{"a": +1}', "no JSON at character 7, '+1'"),
        (b'{"a": 007}', "Expecting ',' delimiter at character 8, '07}'"),
        (b"<html>", "Expecting value at character 1, '<html>'"),
        (b'{"a": "x\ty"}', "Invalid control character at character 9, '\\ty\"}'"),
        (b"[" * 501 + b"]" * 501, "nested deeper than 500 levels"),
        (b"[" * 99_999, "nested deeper than 500 levels"),
        (b'{"a": ' + b"1" * 5001 + b"}", "a number with more than 5000 digits"),
        (b'{"' + b"a" * 50_001 + b'": 1}', "a name with more than 50000 characters"),
    ],
)
def test_an_unparsable_record_tells_what_was_seen(value: bytes, detail: str) -> None:
    found = RecordValidator(RECORD, "json").validate(value)
    assert (found.reason, found.detail) == (Reason.UNPARSABLE, detail)


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (b'[{"a": 1}, {"b": 2}]', f"a list, not an object; {ONE}"),
        (b'"a"', "a text, not an object"),
        (b"7", "a number, not an object"),
        (b"7.5", "a number, not an object"),
        (b"true", "a boolean, not an object"),
        (b"null", "null, not an object"),
    ],
)
def test_what_is_no_object_is_told(value: bytes, detail: str) -> None:
    found = RecordValidator(RECORD, "json").validate(value)
    assert (found.reason, found.detail) == (Reason.NOT_AN_OBJECT, detail)


def test_a_row_of_csv_that_is_no_object_was_to_be_corrected() -> None:
    found = RecordValidator(RECORD, "csv").validate(b"a,b")
    assert found.detail == (
        "a corrected row of CSV is a JSON object of its cells: no JSON at character 1, 'a'"
    )
