"""A document is read as it was written, or reported as damaged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.lake.control.driver_reports import FAILURE, last_failure
from headgate.lake.storage.documents import (
    DamagedDocumentError,
    decoded,
    encoded,
    ids_in,
    read_document,
    read_value,
    write_document,
)
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FORMAT
from headgate.lake.storage.layout import Layout

AT = datetime(2026, 5, 4, 12, 0, 0, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Part:
    at: datetime
    name: str | None = None


@dataclass(frozen=True)
class Whole:
    id: str
    parts: tuple[Part, ...]
    named: Mapping[str, Part]
    body: bytes = b""
    lasts: timedelta = timedelta(0)
    last: Part | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


WHOLE = Whole("a", (Part(AT, "null"), Part(AT)), {"b": Part(AT)}, b"\xff", timedelta(seconds=1.5))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_document(storage, "a.json", {"epoch": 3, "host": "hören"})
    assert read_document(storage, "a.json") == {"schema": FORMAT, "epoch": 3, "host": "hören"}
    assert read_document(storage, "b.json") is None


@pytest.mark.slow
def test_no_flipped_bit_of_a_document_goes_unseen(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_document(storage, "a.json", {"epoch": 3, "released": True, "since": "2026-05-04"})
    written, said = storage.read("a.json"), read_document(storage, "a.json")
    for place in range(len(written)):
        for bit in range(8):
            flipped = bytearray(written)
            flipped[place] ^= 1 << bit
            storage.write("a.json", bytes(flipped))
            with suppress(DamagedDocumentError):
                assert read_document(storage, "a.json") == said, (place, bit)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"epoch": 3}', b"\xff\xfe"])
def test_half_a_document_is_damaged(tmp_path: Path, content: bytes) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a.json", content)
    with pytest.raises(DamagedDocumentError, match="a.json"):
        read_document(storage, "a.json")


def test_a_value_is_read_as_it_was_written(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_document(storage, "a.json", encoded(WHOLE))
    assert read_value(storage, "a.json", Whole) == WHOLE
    assert read_value(storage, "b.json", Whole) is None


def test_times_keep_the_form_of_python() -> None:
    at = "2026-05-04T12:00:00.000005+00:00"
    assert encoded(WHOLE) == {
        "id": "a",
        "parts": ({"at": at, "name": "null"}, {"at": at, "name": None}),
        "named": {"b": {"at": at, "name": None}},
        "body": "/w==",
        "lasts": 1.5,
        "last": None,
        "counts": {},
    }


def test_what_another_version_wrote_is_read() -> None:
    part = {"at": "2026-05-04T12:00:00+00:00", "newer": 1}
    assert decoded(part, Part) == Part(AT.replace(microsecond=0))


def test_fields_that_a_document_does_not_have_are_given(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_document(storage, "a.json", {"parts": [], "named": {}})
    assert read_value(storage, "a.json", Whole, id="a") == Whole("a", (), {})


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"id": "a", "parts": []}, r"a\.json: the document is damaged \(.*`named`\)"),
        ({"id": "a", "parts": [{}], "named": {}}, r"`at` - at `\$\.parts\[0\]`"),
        ({"id": "a", "parts": [{"at": "noon"}], "named": {}}, r"at `\$\.parts\[0\]\.at`"),
        ({"id": "a", "parts": [], "named": {}, "counts": {"c": "x"}}, r"`\$\.counts\[\.\.\.\]`"),
    ],
)
def test_a_document_that_is_no_such_value_is_damaged(
    tmp_path: Path, content: dict[str, object], error: str
) -> None:
    storage = Storage(str(tmp_path))
    write_document(storage, "a.json", content)
    with pytest.raises(DamagedDocumentError, match=error) as raised:
        read_value(storage, "a.json", Whole)
    assert raised.value.remedy.startswith("stop the pipeline, then: ")


def test_half_a_failure_is_damaged(tmp_path: Path) -> None:
    layout = Layout(Storage(str(tmp_path)))
    write_document(layout.storage, FAILURE, {"code": 2, "reason": "x", "remedy": "y"})
    with pytest.raises(DamagedDocumentError, match=r"failure\.json: .*`at`"):
        last_failure(layout)


def test_the_ids_in_a_folder_are_those_of_its_documents(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert ids_in(storage, "some") == []
    for name in ("b.json", "a.json", "a.json.c2671121.tmp", ".c.json", "d.parquet", "e/f.json"):
        storage.write(f"some/{name}", b"{}")
    assert ids_in(storage, "some") == ["a", "b"]
