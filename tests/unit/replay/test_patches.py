"""A patch is an expression over one record, and reads nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.replay.corrections import CorrectedRecord, PatchError, patched, unchanged
from headgate.replay.refused import Refused

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refused(*values: bytes) -> list[CorrectedRecord]:
    found = (
        Refused(
            *("quarantine", 0, number, f"e{number}", None, ["wrong_type"], "level", None),
            *("1.json", NOON, value),
            is_open=True,
        )
        for number, value in enumerate(values)
    )
    return unchanged(list(found), lambda each: each.value or b"")


def documents(corrected: list[CorrectedRecord]) -> list[bytes]:
    return [each.document for each in corrected]


def test_a_record_for_which_it_cannot_be_computed_stays() -> None:
    records = refused(b'{"level": "x"}', b'{"level":', b"\xff")
    corrected = patched(records, "json_merge_patch(value, '{\"level\": 2}')")
    assert documents(corrected) == [b'{"level":2}', b'{"level":', b"\xff"]


def test_null_leaves_a_record() -> None:
    patch = "CASE WHEN event_id = 'e1' AND reasons[1] = 'wrong_type' THEN 'new' END"
    assert documents(patched(refused(b"a", b"b"), patch)) == [b"a", b"new"]


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
        patched(refused(b"a", b"b"), patch)
    assert "--patch" in error.value.message
    assert error.value.remedy
