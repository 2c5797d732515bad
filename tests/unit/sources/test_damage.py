"""A damaged file is set aside, a file that cannot be reached is not."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.sources.errors import FileNotReachedError
from headgate.sources.files.damage import unreadable
from headgate.sources.files.declared import FilesSource
from headgate.sources.files.log import LoggedFile
from headgate.storage.files import Storage

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def logged(path: str) -> LoggedFile:
    return LoggedFile(sequence=1, path=path, size=1, modified=NOW)


def test_a_cut_gzip_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-9])
    found = unreadable(
        Storage(str(tmp_path)), FilesSource(str(tmp_path), "json"), [logged("a.json.gz")]
    )
    assert list(found.values()) == [
        "EOFError: Compressed file ended before the end-of-stream marker was reached"
    ]


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_cut_parquet_file_is_damaged(tmp_path: Path, keep: int) -> None:
    whole = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(1000)}), whole)
    whole.write_bytes(whole.read_bytes()[:keep])
    assert unreadable(
        Storage(str(tmp_path)), FilesSource(str(tmp_path), "parquet"), [logged("a.parquet")]
    )


def test_parquet_pages_of_rubbish_are_damage(tmp_path: Path) -> None:
    whole = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x" * 50] * 1000 + ["y"] * 1000}), whole, compression="snappy")
    content = bytearray(whole.read_bytes())
    content[4:60] = b"\xff" * 56
    whole.write_bytes(content)
    assert unreadable(
        Storage(str(tmp_path)), FilesSource(str(tmp_path), "parquet"), [logged("a.parquet")]
    )


@pytest.mark.parametrize(
    ("failure", "told", "remedy"),
    [
        # Root may read every file, so the test raises the error itself.
        (PermissionError(13, "Permission denied"), "Permission denied", "chmod a+r"),
        (pa.ArrowMemoryError("malloc of size 9 failed"), "too little memory", "free some memory"),
        # Errors of an object store have no number.
        (
            OSError("AWS Error NETWORK_CONNECTION"),
            "NETWORK_CONNECTION",
            "see why it cannot be read",
        ),
    ],
    ids=["rights", "memory", "network"],
)
def test_a_file_that_cannot_be_reached_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, told: str, remedy: str
) -> None:
    def refused(self: Storage, path: str) -> None:
        raise failure

    monkeypatch.setattr(Storage, "open", refused)
    with pytest.raises(FileNotReachedError, match=told) as error:
        unreadable(Storage(str(tmp_path)), FilesSource(str(tmp_path), "json"), [logged("a.json")])
    assert remedy in error.value.remedy
    assert ("chmod" in error.value.remedy) is (remedy == "chmod a+r")


def test_a_line_that_no_block_can_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.sources.files.lines._MOST", 100)
    (tmp_path / "a.json").write_bytes(b"{}\n" + b"x" * 200 + b"\n")
    file = replace(logged("a.json"), size=204)
    found = unreadable(Storage(str(tmp_path)), FilesSource(str(tmp_path), "json"), [file])
    assert list(found.values()) == ["ArrowCapacityError: a line above 2 GiB"]
