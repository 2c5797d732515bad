"""Records that nobody changed keep their bytes; a broken file of edited records is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.history.replay.corrections import (
    CorrectedRecord,
    EditedError,
    as_refused,
    edited_records,
    exported_records,
    patched_records,
)
from headgate.history.replay.refused import RefusedRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOT_UTF8 = b'{"id": "caf\xe9"}'
HARD = ["", "a\u2028b\x85c\x0bd", '{"a": "€"}', "x" * 1_000_000, "\r\n", "null"]


def refused(offset: int, value: bytes | None) -> RefusedRecord:
    row = ("quarantine", 0, offset, None, None, ["unparsable"], None, None, "a.json", NOON)
    return RefusedRecord(*row, value, is_open=True)


def corrected(*values: bytes | None) -> list[CorrectedRecord]:
    rows = [refused(offset, value) for offset, value in enumerate(values)]
    return as_refused(rows, lambda each: each.value or b"")


def documents(found: Sequence[CorrectedRecord]) -> list[bytes]:
    return [each.document for each in found]


def file_of(folder: Path, records: Sequence[CorrectedRecord], begin: str = "") -> Path:
    file = folder / "refused.jsonl"
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in exported_records(records)]
    file.write_text(begin + "".join(lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("begin", ["", "\ufeff", "\n"])
def test_a_file_that_nobody_changed_changes_no_byte(tmp_path: Path, begin: str) -> None:
    records = corrected(NOT_UTF8, *(text.encode() for text in HARD), None)
    assert edited_records(records, file_of(tmp_path, records, begin)) == records


def test_an_edited_line_gives_its_text_or_its_object(tmp_path: Path) -> None:
    records = corrected(b"x", b"y", b"z")
    file = tmp_path / "refused.jsonl"
    file.write_text('{"record": "0:1", "value": {"a": "é"}}\r\n{"record": "0:0", "value": "é"}')
    assert documents(edited_records(records, file)) == ['{"a": "é"}'.encode(), "é".encode()]


@pytest.mark.parametrize(
    "written",
    [
        '{"amount":12345678901234567.89}',
        '{ "a" : 1.10,\t"b":1e400 ,"c": [-0, 0.000, 1E5 ] }',
        '{"half": "\\ud800", "\\u00e9": "\u2028é\\"}", "value": {"record": "0:1"}}',
        f'{{"id": [-{"9" * 6000}]}}',
        "9" * 6000,
        *("12.50", "null", "true", "{}", '[[ ], {"value": 1.0}]'),
    ],
)
def test_a_record_that_is_written_as_json_is_that_text(tmp_path: Path, written: str) -> None:
    """A float has fewer digits than a decimal column."""
    file = tmp_path / "refused.jsonl"
    line = f'{{ "refused":{{"value": [1.5]}},"v\\u0061lue" :\t{written} , "record": "0:0" }}'
    file.write_text(line, encoding="utf-8")
    assert documents(edited_records(corrected(b"x"), file)) == [written.encode()]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            "[]",
            "5",
            "{",
            '{"record": "0:0"}',
            '{"value": "a"}',
            '{"record": "0:7", "value": 1}',
        ),
        '{"record": "0:0", "value": "\\ud800"}',
        '{"record": "0:1", "value": "a", "value": "b"}',
        '{"record": "0:1", "value": {"a": 1, "b": [{"c": 2, "\\u0063": 3}]}}',
        '{"record": "0:1", "value": {"a": NaN}}',
        '{"record": "0:1", "value": -Infinity}',
        '{"record": "0:1", "value": 01}',
        f'{{"record": "0:1", "value": {"[" * 100_000}{"]" * 100_000}}}',
        '{"record": "0:1", "value": 1}\n{"record": "0:1", "value": 2}',
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "refused.jsonl"
    file.write_text(f'{{"record": "0:0", "value": "fine"}}\n\n{line}\n')
    if not line:
        assert documents(edited_records(corrected(b"x", b"y"), file)) == [b"fine"]
        return
    with pytest.raises(EditedError, match=rf"{file.name}, line [34]: "):
        edited_records(corrected(b"x", b"y"), file)


@pytest.mark.parametrize("name", ["gone.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(EditedError, match=str(tmp_path)):
        edited_records(corrected(b"x"), tmp_path / name)


def test_a_patch_that_changes_nothing_keeps_the_bytes() -> None:
    records = corrected(NOT_UTF8, b'{"a": 1}', None)
    assert patched_records(records, "replace(value, '1', '2')") == [
        *(records[0], CorrectedRecord(records[1].of, b'{"a": 2}'), records[2])
    ]
    assert patched_records(records, "null") == records
    assert documents(patched_records(records, "5")) == [b"5"] * 3
