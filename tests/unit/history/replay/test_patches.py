"""A patch is an expression over one record, and reads nothing else."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headgate.history.replay.corrections import (
    CorrectedRecord,
    PatchError,
    as_refused,
    patched_records,
)
from headgate.history.replay.refused import RefusedRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refused(*values: bytes) -> list[CorrectedRecord]:
    found = (
        RefusedRecord(
            *("quarantine", 0, number, f"e{number}", None, ["wrong_type"], "level", None),
            *("1.json", NOON, value),
            is_open=True,
        )
        for number, value in enumerate(values)
    )
    return as_refused(list(found), lambda each: each.value or b"")


def documents(corrected: list[CorrectedRecord]) -> list[bytes]:
    return [each.document for each in corrected]


def test_a_record_for_which_it_cannot_be_computed_stays() -> None:
    records = refused(b'{"level": "x"}', b'{"level":', b"\xff")
    corrected = patched_records(records, "json_merge_patch(value, '{\"level\": 2}')")
    assert documents(corrected) == [b'{"level":2}', b'{"level":', b"\xff"]


@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        ("12345678901234567.89", True),
        ("0.1234567890123456789", True),
        *((exact, False) for exact in ("0.1", "1.10", "1e3", "1" * 30, "-0.0", "1e999")),
    ],
)
def test_a_number_that_it_would_round_is_named(number: str, rounded: bool) -> None:
    (record,) = refused(b'{"amount": %s, "level": "x"}' % number.encode())
    merge = "json_merge_patch(value, '{\"level\": 2}')"
    if rounded:
        with pytest.raises(PatchError, match="would round") as error:
            patched_records([record], merge)
        assert number in error.value.message
        assert "--edited" in error.value.remedy
    else:
        (text,) = documents(patched_records([record], merge))
        amount = json.loads(text, parse_float=Decimal, parse_int=Decimal)["amount"]
        assert float(number) == math.inf or amount == Decimal(number)
    (text,) = documents(patched_records([record], "replace(value, '\"x\"', '2')"))
    assert text == b'{"amount": %s, "level": 2}' % number.encode()


def test_null_leaves_a_record() -> None:
    patch = "CASE WHEN event_id = 'e1' AND reasons[1] = 'wrong_type' THEN 'new' END"
    assert documents(patched_records(refused(b"a", b"b"), patch)) == [b"a", b"new"]


@pytest.mark.parametrize(
    "patch",
    [
        *("'a', 'b'", "(SELECT 'a' WHERE value = 'a')", "value || row_number() OVER ()"),
        *("nothing(value)", "no_column", "count(*)", "unnest([1, 2])", "", ";"),
        *("(SELECT content FROM read_text('/etc/hostname'))", "value) , (value"),
        "value AS VARCHAR))) FROM records LIMIT 1 --",
    ],
)
def test_anything_else_is_refused(patch: str) -> None:
    with pytest.raises(PatchError) as error:
        patched_records(refused(b"a", b"b"), patch)
    assert "--patch" in error.value.message
    assert error.value.remedy
