"""CSV lines as JSON objects, for bronze and for people who correct them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.csv_cells import Dialect
from headgate.flow.sources.files.csv_header import Header
from headgate.flow.sources.files.csv_lines import as_document, csv_header, documents
from headgate.flow.sources.files.csv_rows import csv_rows
from headgate.flow.sources.files.declared import FilesSource
from headgate.lake.storage.files import Storage

ID_NOTE = Header(("id", "note"), 2)


def source(folder: Path, **more: object) -> FilesSource:
    return FilesSource(path=str(folder), format="csv", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_cells_have_the_names_of_their_files_header(tmp_path: Path, name: str) -> None:
    content = "\ufeffid; note ;level\n".encode()
    packed = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    document = as_document(source(tmp_path, csv_delimiter=";"), name, b'a;"x ""y"";z";\r')
    assert json.loads(document) == {"id": "a", "note": 'x "y";z'}


def test_a_first_cell_may_begin_with_a_brace(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    assert json.loads(as_document(source(tmp_path), "a.csv", b"{x,y")) == {"id": "{x", "note": "y"}


@pytest.mark.parametrize(
    "line", ['"a" ,c', 'a"b,"c"', "a\rb,c", f"{'x' * 200_000},c", '"a,b"",c",', "a,b\r"]
)
def test_a_line_that_is_replayed_has_the_cells_that_it_had(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    (first,) = documents(pa.array([line.encode()]), ID_NOTE, Dialect())[0].to_pylist()
    again = as_document(source(tmp_path), "a.csv", line.encode())
    assert json.loads(again) == json.loads(first)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("gone.csv", b"a,b"),
        ("a.csv", b"a,b,c,d"),
        ("a.csv", b"a"),
        ("a.csv", b'a,"b'),
        ("a.csv", b'a,"b"c'),
        ("a.csv", b""),
        ("twice.csv", b"a,b"),
        ("cut.csv", b"a,b"),
        ("empty.csv", b"a,b"),
        ("a.csv", b"\xff,b"),
        ("a.csv", b'{"id": "a"}'),
        (None, b"a,b"),
    ],
)
def test_what_is_unparsable_stays_as_it_is(tmp_path: Path, where: str | None, value: bytes) -> None:
    """Otherwise, a replay would accept the line of a file that was cut, without a correction."""
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    (tmp_path / "twice.csv").write_bytes(b"id,id\n")
    (tmp_path / "cut.csv").write_bytes(b'id,"no\n')
    (tmp_path / "empty.csv").write_bytes(b"")
    assert as_document(source(tmp_path), where, value) == value


def test_a_line_that_cannot_be_read_has_a_detail() -> None:
    lines = [b"1,2", b"1", b"1,2,", b'1,"2', b'1,"2"x', b"1,Z\xfcrich", b"\xed\xa0\x80,2", b","]
    found, says = documents(pa.array(lines), ID_NOTE, Dialect())
    assert found.to_pylist() == [b'{"id":"1","note":"2"}', *[None] * 6, b"{}"]
    assert says.to_pylist() == [
        None,
        "1 cell, the header has 2 names",
        "3 cells, the header has 2 names",
        "cell 2: the quote that opens here is not closed; cells with line breaks need "
        "csv: {multiline: true}",
        "cell 2: text after the closing quote, 'x'; write a quote within a cell twice",
        "not UTF-8: the byte 0xFC after '1,Z'",
        "not UTF-8: the byte 0xED at the beginning",
        None,
    ]


def test_cells_under_empty_names_at_the_end_have_no_text() -> None:
    lines = [b"1,2", b"1,2,", b"1,2,,", b'1,2,,""', b"1,2,3", b"1,2,,,", b"1"]
    found, says = documents(pa.array(lines), Header(("a", "b"), 4), Dialect())
    assert found.to_pylist() == [b'{"a":"1","b":"2"}'] * 4 + [None] * 3
    assert says.to_pylist()[4:] == [
        "cell 3: '3', under an empty name",
        "5 cells, the header has 4 names",
        "1 cell, the header has 4 names",
    ]


def test_a_record_of_a_file_without_a_header_needs_no_file(tmp_path: Path) -> None:
    bare = source(tmp_path, csv_header=False, csv_fields=("id", "note"))
    assert as_document(bare, "gone.csv", b"1,two\r") == b'{"id":"1","note":"two"}'


LINES = [b"1,2", b"1", b"1,2,3", b"1,\xff", b"1,\xed\xa0\x80", '"é,",'.encode(), b" , "]
LINES += [b"1,web\r", b'1,"web"\r', b"1\r,2", b"\x0b", b"1\r", b'1,"x"y', b'1,"open']
BLANK = [b"", b" ", b" \t", b"\r", b" \r"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("header", [b"a,b", b" a , b", b"\xef\xbb\xbfa,b", b'"a",b,', b"a,b\r"])
def test_the_same_records_are_valid_with_and_without_line_breaks_in_cells(
    tmp_path: Path, header: bytes, end: bytes
) -> None:
    blank = [] if header.startswith(b"\xef") else BLANK
    content = end.join([*blank, header, *BLANK, *LINES])
    (tmp_path / "a.csv").write_bytes(content)
    names = csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    rows = [*csv_rows(io.BytesIO(content), source(tmp_path))]
    alone, says = (each.to_pylist() for each in documents(pa.array(LINES), names, Dialect()))
    assert [row.document for row in rows] == alone
    assert [row.value for row in rows] == [
        line if document is None else document for line, document in zip(LINES, alone, strict=True)
    ]
    assert [row.detail is None for row in rows] == [detail is None for detail in says]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\r1,2\r3,4\r",
        b"a,b\r1,2",
        b'"a","b"\r"1","2"\r',
        b'"a\rb",c\r1,2\r',
        b"\xef\xbb\xbfa,b\r1,2\r",
        b"a,b\r1,2\r3,4\n5,6\n",  # files of both kinds, put together
    ],
)
def test_a_file_whose_lines_end_with_cr_is_not_read_as_one_header(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(WrongContentError, match="lines end with CR"):
        csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    assert as_document(source(tmp_path), "a.csv", b"3,4") == b"3,4"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b\r\n1,2\r\n", ("a", "b")),
        (b"a,b\r\r\n1,2\n", ("a", "b")),
        (b'"a\rb",c\r\n1,2\r\n', ("a\rb", "c")),
        (b"\n \n", ()),
    ],
)
def test_a_return_within_quotes_or_before_a_newline_is_no_line_end(
    tmp_path: Path, content: bytes, names: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv").names == names
