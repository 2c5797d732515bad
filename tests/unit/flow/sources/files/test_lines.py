"""Lines and their positions, over any sizes of blocks, parts and splits."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage
from headgate.lake.tables.record_shape import record_schema

ARRIVED = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = ARRIVED + timedelta(days=365)
SEVERAL = st.lists(st.sampled_from([b"", b" ", b"\t\r", b"\r", b"a", b" b", b"{}", b"\xff" * 9]))


def read(folder: Path, *names: str, format: str = "json", **csv: Any) -> pa.Table:
    """The records of some files, read from parts that were pickled."""
    files = [
        LoggedFile(sequence, name, (folder / name).stat().st_size, LATER, ARRIVED)
        for sequence, name in enumerate(names)
    ]
    source = FilesSource(str(folder), format, **csv)  # type: ignore[arg-type]
    found = pickle.loads(pickle.dumps(parts_of_files(Storage(str(folder)), source, files)))
    schema = record_schema("file", has_document=format == "csv")
    return pa.concat_tables([schema.empty_table(), *(b for part in found for b in part.blocks())])


def placed(
    folder: Path, name: str, content: bytes, sizes: tuple[int, int, int], **options: Any
) -> list[tuple[int, bytes]]:
    """The positions and values of a file's records, at these sizes of splits, parts and blocks."""
    (folder / name).write_bytes(content)
    split, part, block = sizes
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.SPLIT", split)
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", part)
        patched.setattr("headgate.flow.sources.files.lines.BLOCK", block)
        patched.setattr("headgate.flow.sources.files.lines._REST", block)
        found = read(folder, name, **options)
    return list(zip(found["offset"].to_pylist(), found["value"].to_pylist(), strict=True))


def positions(content: bytes, split: int, blanks: bytes = b" \t\r") -> Sequence[tuple[int, bytes]]:
    """The lines that are not blank, each with its position, as a split's reader finds them."""
    found, counted, start = [], dict[int, int](), 0
    for line in content.split(b"\n"):
        of = max(start - 1, 0) // split * split
        if line.strip(blanks):
            found.append((of + counted.setdefault(of, 0), line))
            counted[of] += 1
        start += len(line) + 1
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("landing")


@given(SEVERAL, st.integers(2, 40), st.integers(1, 40), st.integers(1, 40))
def test_positions_depend_on_the_size_of_splits_alone(
    folder: Path, values: list[bytes], split: int, part: int, block: int
) -> None:
    content, sizes = b"\n".join(values), (split, part, block)
    assert placed(folder, "a.json", content, sizes) == positions(content, split)


@pytest.mark.parametrize(("delimiter", "blanks"), [("\t", b" \r"), (" ", b"\t\r"), (",", b" \t\r")])
@given(
    values=st.lists(
        st.sampled_from([b"", b"\r", b"\t", b"\t\t\r", b" ", b"  ", b"\t ", b",", b"a"])
    ),
    split=st.integers(2, 40),
    part=st.integers(1, 40),
    block=st.integers(1, 40),
)
def test_a_line_of_empty_cells_has_a_position(
    folder: Path,
    delimiter: str,
    blanks: bytes,
    values: list[bytes],
    split: int,
    part: int,
    block: int,
) -> None:
    content, sizes = b"\n".join(values), (split, part, block)
    csv: dict[str, Any] = {
        "csv_delimiter": delimiter,
        "csv_fields": ("x", "y"),
        "csv_header": False,
    }
    found = placed(folder, "a.csv", content, sizes, format="csv", **csv)
    assert found == positions(content, split, blanks)


@given(SEVERAL, st.integers(1, 40))
def test_a_gzip_is_one_split(folder: Path, values: list[bytes], block: int) -> None:
    content = b"\n".join(values)
    (folder / "a.json.gz").write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.SPLIT", 8)
        patched.setattr("headgate.flow.sources.files.lines.BLOCK", block)
        found = read(folder, "a.json.gz")
    assert found["value"].to_pylist() == [v for _, v in positions(content, 1 << 30)]
    assert found["offset"].to_pylist() == list(range(len(found)))


def test_columns_of_records(folder: Path) -> None:
    (folder / "a:b.json").write_bytes(b"\xef\xbb\xbf{}\r\n\n{")
    (folder / "none.json").write_bytes(b"\xef\xbb\xbf")
    (folder / "odd.json").write_bytes("\u2028\n\xa0\n".encode())
    found = read(folder, "a:b.json", "none.json", "odd.json")
    assert found.schema == record_schema("file")
    assert found["value"].to_pylist() == [b"{}\r", b"{", "\u2028".encode(), "\xa0".encode()]
    assert found["offset"].to_pylist() == [0, 1, 2 << 36, (2 << 36) + 1]
    assert found["file"].to_pylist() == ["a:b.json"] * 2 + ["odd.json"] * 2
    assert set(found["partition"].to_pylist()) == {0}
    assert {*found["seen_at"].to_pylist(), *found["ingested_at"].to_pylist()} == {ARRIVED}
    assert found["key"].null_count == found["headers"].null_count == 4


def test_a_truncated_gzip_is_an_error(folder: Path) -> None:
    (folder / "cut.json.gz").write_bytes(gzip.compress(b"a\n" * 9999)[:-9])
    with pytest.raises(EOFError):
        read(folder, "cut.json.gz")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_the_first_line_of_csv_is_no_record(folder: Path, name: str) -> None:
    content = b'\xef\xbb\xbf\n"x", y\r\n1,2\r\n \n3\n4,5'
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", 6)
        found = read(folder, name, format="csv")
    assert found.schema == record_schema("file", has_document=True)
    assert found["value"].to_pylist() == [b"1,2\r", b"3", b"4,5"]
    assert found["document"].to_pylist() == [b'{"x":"1","y":"2"}', None, b'{"x":"4","y":"5"}']
    assert found["offset"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_without_a_header_the_first_row_of_csv_is_a_record(
    folder: Path, name: str, multiline: bool
) -> None:
    content = b"\xef\xbb\xbf1,2\n3\n4,5"
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", 6)
        names: dict[str, Any] = {"csv_header": False, "csv_fields": ("x", "y")}
        found = read(folder, name, format="csv", csv_multiline=multiline, **names)
    assert found["document"].to_pylist() == [b'{"x":"1","y":"2"}', None, b'{"x":"4","y":"5"}']
    assert found["value"].to_pylist()[1] == b"3"
    assert found["offset"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(("delimiter", "blank"), [(",", b"\t"), ("\t", b" "), (" ", b"\t")])
def test_a_row_of_empty_cells_is_a_record_with_any_delimiter(
    folder: Path, name: str, delimiter: str, blank: bytes, multiline: bool
) -> None:
    lines = [
        b"",
        blank,
        b"x,y,z",
        b"",
        blank,
        b",,",
        b"1,,3",
        b",,\r",
        b"\r",
        b",",
        blank * 2,
        b",,",
    ]
    content = b"\n".join(lines).replace(b",", delimiter.encode())
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    found = read(folder, name, format="csv", csv_delimiter=delimiter, csv_multiline=multiline)
    full = b'{"x":"1","z":"3"}'
    assert found["document"].to_pylist() == [b"{}", full, b"{}", None, b"{}"]
    assert found["offset"].to_pylist() == [n + (not multiline) for n in range(5)]


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("delimiter", [",", "\t", " "])
def test_a_header_of_empty_names_is_one_with_any_delimiter(
    folder: Path, delimiter: str, multiline: bool
) -> None:
    (folder / "a.csv").write_bytes(b",\n,\n1,2\n".replace(b",", delimiter.encode()))
    with pytest.raises(WrongContentError, match="the header has no name"):
        read(folder, "a.csv", format="csv", csv_delimiter=delimiter, csv_multiline=multiline)


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_header_is_read_from_any_part(folder: Path, part: int, block: int) -> None:
    content = b" \n\nx,y\n1,2\n3,4\n5,6\n7,8\n"
    found = placed(folder, "a.csv", content, (1 << 20, part, block), format="csv")
    assert found == [(1, b"1,2"), (2, b"3,4"), (3, b"5,6"), (4, b"7,8")]


@pytest.mark.parametrize("multiline", [False, True])
def test_a_wrong_header_is_told_by_the_first_block(folder: Path, multiline: bool) -> None:
    (folder / "a.csv").write_bytes(b"a;b\n" + b"1;2\n" * 1_000)
    file = LoggedFile(1, "a.csv", 4_004, ARRIVED, ARRIVED)
    source = FilesSource(str(folder), "csv", csv_fields=("a", "b"), csv_multiline=multiline)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", 1_000)
        found = parts_of_files(Storage(str(folder)), source, [file])
    for part in found[
        : None if multiline else 4
    ]:  # in any worker, before a record of the file is committed
        with pytest.raises(WrongContentError, match="the header has 1 name, 'a;b'; expected some"):
            next(part.blocks())


@pytest.mark.parametrize("content", [b"", b"x,y", b"\n", b" \r\n\n", b"\xef\xbb\xbfx,y\r\n"])
@pytest.mark.parametrize("multiline", [False, True])
def test_a_file_of_a_header_alone_or_of_nothing_is_fine(
    folder: Path, content: bytes, multiline: bool
) -> None:
    for name, written in (("a.csv", content), ("a.csv.gz", gzip.compress(content))):
        (folder / name).write_bytes(written)
        assert not len(read(folder, name, format="csv", csv_multiline=multiline))


def test_an_ordinary_file_is_opened_once(folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"x,y\n1,2\n")
    opened = list[str]()

    def counted(self: Storage, path: str) -> Any:
        opened.append(path)
        return open_(self, path)

    open_ = Storage.open
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Storage, "open", counted)
        assert len(read(folder, "a.csv", format="csv")) == 1
    assert opened == ["a.csv"]


@pytest.mark.parametrize("multiline", [False, True])
def test_an_empty_line_of_one_column_is_blank(folder: Path, multiline: bool) -> None:
    (folder / "a.csv").write_bytes(b"x\n\n \n\r\n7\n\t\n")
    found = read(folder, "a.csv", format="csv", csv_delimiter="\t", csv_multiline=multiline)
    assert found["document"].to_pylist() == [b'{"x":"7"}', None]
