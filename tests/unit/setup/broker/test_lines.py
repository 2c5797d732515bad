"""From lines to records, and from records to lines."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from headgate.setup.broker.consuming import ConsumedRecord, Start, _first, _time, as_document
from headgate.setup.broker.producing import LineError, records


def read(text: bytes, key: str | None = None) -> list[tuple[bytes | None, bytes]]:
    return list(records(io.BytesIO(text), key, "bids.json", ""))


def test_a_line_is_a_record_byte_for_byte_and_a_blank_one_is_none() -> None:
    assert read(b'{"a": 1}\r\n\n \t\n\xff\xfe \nlast') == [
        (None, b'{"a": 1}'),
        (None, b"\xff\xfe "),
        (None, b"last"),
    ]


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ('"ä b"', "ä b".encode()),
        ("7", b"7"),
        ("1.50", b"1.5"),
        ("true", b"true"),
        ('{"a": [1, 2]}', b'{"a":[1,2]}'),
        ("null", None),
    ],
)
def test_a_key_is_the_text_or_the_json_of_its_field(field: str, key: bytes | None) -> None:
    assert read(f'{{"k": {field}}}'.encode(), "k")[0][0] == key


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b'{"auctoin": 1}', 'has no field auction (did you mean "auctoin"?)'),
    ],
)
def test_a_line_without_the_key_is_named(line: bytes, said: str) -> None:
    lines = records(
        io.BytesIO(b'{"auction": 1}\n\n' + line), "auction", "my bids.json", "sent again"
    )
    assert next(lines)[0] == b"1"
    with pytest.raises(LineError) as raised:
        next(lines)
    assert raised.value.message.startswith("my bids.json, line 3: ")
    assert said in raised.value.message
    assert raised.value.remedy.endswith("tail -n +3 'my bids.json' | sent again")


AT = datetime(2026, 3, 1, 12, 0, 0, 5000, tzinfo=UTC)


def test_a_record_is_text_where_it_can_be() -> None:
    record = ConsumedRecord(1, 7, AT, b"k", (("h", b"v"), ("n", None)), "ä".encode())
    assert as_document(record) == {
        "partition": 1,
        "offset": 7,
        "timestamp": "2026-03-01T12:00:00.005Z",
        "key": "k",
        "headers": [{"name": "h", "value": "v"}, {"name": "n", "value": None}],
        "value": "ä",
    }


def test_bytes_that_are_no_text_stand_in_a_field_of_their_own() -> None:
    document = as_document(ConsumedRecord(0, 0, None, b"\xff", (("h", b"\xfe"),), None))
    assert document["key_base64"] == "/w=="
    assert "key" not in document
    assert document["headers"] == [{"name": "h", "value_base64": "/g=="}]
    assert (document["value"], document["timestamp"]) == (None, None)


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert _time(1, 1_772_366_400_005) == AT
    assert _time(1, 1 << 62) is None
    assert _time(0, -1) is None
    assert _time(1, -1) is None


@pytest.mark.parametrize(
    ("start", "first"), [("earliest", 5), ("latest", 9), (7, 7), (0, 5), (100, 9)]
)
def test_where_reading_begins_lies_within_the_partition(start: Start, first: int) -> None:
    assert _first(start, 5, 9) == first
