"""A table or a document of another format is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FORMAT, FormatError
from headgate.lake.tables.log import commit_metadata, entry_path, read_commit
from headgate.lake.tables.payloads.none import NoPayload
from headgate.lake.tables.state import State

FORMATS = pytest.mark.parametrize(
    ("found", "says", "next_"),
    [
        *((each, f"an earlier Headgate wrote it in format {each}", "run") for each in (1, 3, 4, 6)),
        (FORMAT + 1, f"a newer Headgate wrote it in format {FORMAT + 1}", "use the newer Headgate"),
    ],
)


def test_no_earlier_format_has_this_number() -> None:
    assert FORMAT not in (1, 2, 3, 4, 5, 6, 7)


@FORMATS
def test_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: int, says: str, next_: str
) -> None:
    storage = Storage(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("headgate.lake.storage.documents.FORMAT", found)
        write_document(storage, "a.json", {"epoch": 3})
    with pytest.raises(FormatError, match=says) as refused:
        read_document(storage, "a.json")
    assert next_ in refused.value.remedy


@FORMATS
def test_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: int, says: str, next_: str
) -> None:
    storage = Storage(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("headgate.lake.tables.state.FORMAT", found)
        entry = {"commitInfo": commit_metadata(State(NoPayload()))}
    storage.write(entry_path(1), json.dumps(entry).encode())
    with pytest.raises(FormatError, match=says) as refused:
        read_commit(storage, 1)
    assert next_ in refused.value.remedy
