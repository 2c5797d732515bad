"""What a file contains is known by its first bytes, whatever its name is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.declaration.model import RecordFormat
from headgate.flow.sources.files.damage import unreadable
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LINES = b"".join(b'{"a": %d}\n' % n for n in range(1000))


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, "zstd", asbytes=True)
    return packed


def zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.json", content)
    return file.getvalue()


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), file)
    return file.getvalue()


def logged(folder: Path, name: str, content: bytes) -> LoggedFile:
    (folder / name).write_bytes(content)
    return LoggedFile(1, name, len(content), NOW, NOW)


def read(folder: Path, name: str, content: bytes, **options: object) -> list[tuple[int, bytes]]:
    """The positions and values of a file's records."""
    file = logged(folder, name, content)
    source = FilesSource(str(folder), **({"format": "json"} | options))  # type: ignore[arg-type]
    found: list[tuple[int, bytes]] = []
    for part in parts_of_files(Storage(str(folder)), source, [file]):
        for block in part.blocks():
            offsets = (offset - (1 << 36) for offset in block["offset"].to_pylist())
            found += zip(offsets, block["value"].to_pylist(), strict=True)
    return found


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "A.GZ", "a.gzip", "a.bz2", "a.zst", "a"])
@pytest.mark.parametrize(
    "packed",
    [
        LINES,
        gzip.compress(LINES),
        gzip.compress(LINES[:500]) + gzip.compress(LINES[500:]) + b"\0" * 99,
        bz2.compress(LINES),
        bz2.compress(LINES[:500]) + bz2.compress(LINES[500:]),
        zstd(LINES),
        zstd(LINES[:500]) + b"\x50\x2a\x4d\x18\x02\0\0\0ab" + zstd(LINES[500:]),
    ],
    ids=["plain", "gzip", "gzips", "bz2", "bz2s", "zstd", "zstds"],
)
def test_text_is_read_whatever_its_name_is(tmp_path: Path, name: str, packed: bytes) -> None:
    expected = [*enumerate(LINES.splitlines())]
    assert read(tmp_path, name, packed) == expected
    with pytest.MonkeyPatch.context() as patched:  # a compressed file is one split
        patched.setattr("headgate.flow.sources.files.parts.SPLIT", 400)
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", 100)
        found = read(tmp_path, name, packed)
    assert [value for _, value in found] == LINES.splitlines()
    assert (found == expected) is (packed is not LINES)


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    "content",
    [b"", gzip.compress(b""), gzip.compress(b"\n \n"), bz2.compress(b""), zstd(b"")],
    ids=["plain", "gzip", "blank", "bz2", "zstd"],
)
def test_an_empty_file_is_fine(tmp_path: Path, content: bytes, format: RecordFormat) -> None:
    assert read(tmp_path, "a.gz", content, format=format) == []
    assert read(tmp_path, "a.gz", content, format="csv", csv_multiline=True) == []


UNPACK = "not lines of text; unpack it, or compress it with gzip, bzip2 or zstd"
APART = "not lines of text; give it a folder and a source of its own"


@pytest.mark.parametrize("inside", ["plain", "gzip"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (zipped(LINES), f"it is a zip archive, as .xlsx files are, {UNPACK}"),
        (lzma.compress(LINES), f"it is compressed with xz, {UNPACK}"),
        (parquet(), f"it is a Parquet file, {APART}"),
        (b"Obj\x01\x04\x14avro.codec", f"it is an Avro file, {APART}"),
        (b"ORC\n\x1e\n\x03\0\0", f"it is an ORC file, {APART}"),
        (b"data.json" + b"\0" * 248 + b"ustar\0" + b"\0" * 249, f"it is a tar archive, {UNPACK}"),
        ('{"a": 1}\n'.encode("utf-16"), "it is encoded in UTF-16; convert it to UTF-8"),
        ('{"a": 1}\n'.encode("utf-16-be"), "it is encoded in UTF-16; convert it to UTF-8"),
        ("a,b\n".encode("utf-32"), "it is encoded in UTF-32; convert it to UTF-8"),
    ],
    ids=["zip", "xz", "parquet", "avro", "orc", "tar", "utf-16", "utf-16-be", "utf-32"],
)
def test_other_contents_are_never_taken_as_lines(
    tmp_path: Path, content: bytes, says: str, inside: str
) -> None:
    file = logged(tmp_path, "a.csv", gzip.compress(content) if inside == "gzip" else content)
    for source in (
        FilesSource(str(tmp_path), "json"),
        FilesSource(str(tmp_path), "csv"),
        FilesSource(str(tmp_path), "csv", csv_multiline=True),
        FilesSource(str(tmp_path), "csv", csv_header=False, csv_fields=("a",)),
    ):
        assert unreadable(Storage(str(tmp_path)), source, [file]) == {file: says}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LINES, 'it is not Parquet, and begins with \'{"a": 0}\\n{"a": 1}\\n{"a": 2}\\n{"a":\''),
        (
            gzip.compress(LINES),
            "it is compressed with gzip, not Parquet; give it a source of its own",
        ),
        (zipped(LINES), "it is a zip archive, as .xlsx files are"),
        (parquet()[:-4], "ArrowInvalid: Parquet magic bytes not found in footer."),
        (b"", "ArrowInvalid: Parquet file size is 0 bytes"),
    ],
    ids=["text", "gzip", "zip", "cut", "empty"],
)
def test_what_is_not_parquet_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    file = logged(tmp_path, "a.parquet", content)
    source = FilesSource(str(tmp_path), "parquet")
    (why,) = unreadable(Storage(str(tmp_path)), source, [file]).values()
    assert why.startswith(says)


def test_compressed_twice_and_cut_files_are_set_aside(tmp_path: Path) -> None:
    contents = {
        gzip.compress(gzip.compress(LINES)): "it is compressed twice, with gzip within; unpack it "
        "once",
        bz2.compress(LINES)[:-9]: "OSError: Truncated compressed stream",
        zstd(LINES)[:-9]: "OSError: Truncated compressed stream",
        gzip.compress(LINES)[:-9]: "EOFError: Compressed file ended before",
        gzip.compress(LINES) + b"more": "BadGzipFile: Not a gzipped file",
        b"\x1f": None,
    }
    source = FilesSource(str(tmp_path), "json")
    for content, says in contents.items():
        found = unreadable(Storage(str(tmp_path)), source, [logged(tmp_path, "a.gz", content)])
        assert [why.startswith(says or "") for why in found.values()] == [True] * (says is not None)


@pytest.mark.parametrize(
    "text", ["PAR1,PAR2", "ORC,SIZE", "BZh9,x", "PK,id", "Object", f"é{'m' * 255}ustard"]
)
def test_text_that_begins_with_the_letters_of_a_format_is_text(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, "a.csv", text.encode(), format="json") == [(0, text.encode())]
