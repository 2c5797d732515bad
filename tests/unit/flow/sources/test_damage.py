"""A damaged file is set aside, a file that cannot be reached is not."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.flow.sources.errors import FileNotReachedError
from headgate.flow.sources.files.damage import unreadable
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.landing import LandingAwayError
from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.storage.files import Storage

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def logged(path: str) -> LoggedFile:
    return LoggedFile(sequence=1, path=path, size=1, modified=NOW, seen=NOW)


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
    with pytest.raises((FileNotReachedError, LandingAwayError), match=told) as error:
        unreadable(Storage(str(tmp_path)), FilesSource(str(tmp_path), "json"), [logged("a.json")])
    assert isinstance(error.value, LandingAwayError) is (told == "NETWORK_CONNECTION")
    assert remedy in error.value.remedy
    assert ("chmod" in error.value.remedy) is (remedy == "chmod a+r")


def test_a_line_that_no_block_can_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.flow.sources.files.lines._MOST", 100)
    (tmp_path / "a.json").write_bytes(b"{}\n" + b"x" * 200 + b"\n")
    file = replace(logged("a.json"), size=204)
    found = unreadable(Storage(str(tmp_path)), FilesSource(str(tmp_path), "json"), [file])
    assert list(found.values()) == ["ArrowCapacityError: a line above 2 GiB"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_whose_lines_end_with_cr_is_set_aside(tmp_path: Path, name: str) -> None:
    """All of it would be the header, which is no record."""
    content = b"a,b\r1,2\r3,4\r"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    file = replace(logged(name), size=(tmp_path / name).stat().st_size)
    source = FilesSource(str(tmp_path), "csv")
    (why,) = unreadable(Storage(str(tmp_path)), source, [file]).values()
    assert "convert the file to LF, or declare csv: {multiline: true}" in why
    assert not unreadable(
        Storage(str(tmp_path)), FilesSource(str(tmp_path), "csv", csv_multiline=True), [file]
    )


def test_parquet_with_two_columns_of_one_name_is_set_aside(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], ["a", "a"]), tmp_path / "a.parquet")
    source = FilesSource(str(tmp_path), "parquet")
    (why,) = unreadable(Storage(str(tmp_path)), source, [logged("a.parquet")]).values()
    assert why == "ArrowInvalid: several columns are named a; rename them"


class Flaky:
    """A file of which one read fails, as of a network that comes back."""

    def __init__(self, raw: Any, left: list[int]) -> None:
        self._raw, self._left = raw, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def read(self, size: int = -1) -> bytes:
        self._left[0] -= 1
        if self._left[0] == 0:
            raise OSError("AWS Error NETWORK_CONNECTION")
        content: bytes = self._raw.read(None if size < 0 else size)
        return content


def packed(name: str, content: bytes) -> bytes:
    if name.endswith(".zst"):
        whole: bytes = pa.compress(content, "zstd", asbytes=True)
        return whole
    return gzip.compress(content) if name.endswith(".gz") else content


def written(folder: Path, name: str) -> tuple[FilesSource, LoggedFile]:
    """A source, and an intact file of it."""
    content = b'a,b\n"1",x\n' * 1000 if ".csv" in name else b'{"a": 1}\n' * 1000
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"a": range(1000)}), folder / name)
    else:
        (folder / name).write_bytes(packed(name, content))
    format_ = cast(Any, name.split(".")[1])
    source = FilesSource(str(folder), format_, csv_multiline=name.startswith("multi"))
    return source, replace(logged(name), size=(folder / name).stat().st_size)


INTACT = (
    *("a.json", "a.json.gz", "a.json.zst", "a.csv", "a.csv.gz"),
    *("multi.csv", "multi.csv.gz", "a.parquet"),
)


@pytest.mark.parametrize("fails", ["open", "read"])
@pytest.mark.parametrize("name", INTACT)
def test_a_read_that_fails_for_a_moment_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fails: str
) -> None:
    source, file = written(tmp_path, name)
    opened, left = Storage.open, [1]

    def flaky(self: Storage, path: str) -> Any:
        if fails == "read":
            return pa.PythonFile(Flaky(opened(self, path), left), mode="r")
        left[0] -= 1
        if left[0] == 0:
            raise OSError("AWS Error NETWORK_CONNECTION")
        return opened(self, path)

    monkeypatch.setattr(Storage, "open", flaky)
    assert unreadable(Storage(str(tmp_path)), source, [file]) == {}
    assert left[0] <= 0, "the read has failed"


@pytest.mark.parametrize("name", INTACT)
def test_a_file_of_which_each_read_fails_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A decoder may turn the failure into an error of its own."""
    source, file = written(tmp_path, name)
    opened = Storage.open

    def flaky(self: Storage, path: str) -> Any:
        return pa.PythonFile(Flaky(opened(self, path), [1]), mode="r")

    monkeypatch.setattr(Storage, "open", flaky)
    with pytest.raises(LandingAwayError, match="NETWORK_CONNECTION"):
        unreadable(Storage(str(tmp_path)), source, [file])


def test_a_damaged_file_is_found_although_a_read_of_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, file = written(tmp_path, "a.json.gz")
    whole = tmp_path / "a.json.gz"
    whole.write_bytes(whole.read_bytes()[:-9])
    opened, left = Storage.open, [1]

    def flaky(self: Storage, path: str) -> Any:
        return pa.PythonFile(Flaky(opened(self, path), left), mode="r")

    monkeypatch.setattr(Storage, "open", flaky)
    (why,) = unreadable(Storage(str(tmp_path)), source, [file]).values()
    assert why.startswith("EOFError: ")
