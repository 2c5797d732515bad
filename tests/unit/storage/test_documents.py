"""A document is read as it was written, or reported as damaged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from headgate.storage.documents import DamagedDocumentError, read_document, write_document
from headgate.storage.files import Storage
from headgate.storage.format import FORMAT


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
