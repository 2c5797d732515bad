"""CSV lines as JSON objects, for people who correct them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.sources.files.cells import as_document, csv_header
from headgate.sources.files.csv_lines import cells_of, documents
from headgate.sources.files.csv_rows import csv_rows
from headgate.sources.files.declared import FilesSource
from headgate.storage.files import Storage


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
    "line", ['"a"b,c', '"a" ,c', 'a"b,"c"', "a\rb,c", f"{'x' * 200_000},c", '"a,b"",c",', "a,b\r"]
)
def test_a_line_that_is_replayed_has_the_cells_that_it_had(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    (first,) = documents(pa.array([line.encode()]), ("id", "note"), ",").to_pylist()
    again = as_document(source(tmp_path), "a.csv", line.encode())
    assert json.loads(again) == json.loads(first)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("gone.csv", b"a,b"),
        ("a.csv", b"a,b,c,d"),
        ("a.csv", b"a"),
        ("a.csv", b'a,"b'),
        ("a.csv", b""),
        ("twice.csv", b"a,b"),
        ("cut.csv", b"a,b"),
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
    assert as_document(source(tmp_path), where, value) == value


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("a,b", ["a", "b"]),
        (",", ["", ""]),
        ('"a,""b""" ,', ['a,"b"', ""]),
        ('"a"b,c', ['"a"b', "c"]),
        ('a"b,"c"', ['a"b', "c"]),
        ('a,5"', ["a", '5"']),
        ('"",""\r', ["", ""]),
        ("a,b\r", ["a", "b"]),
        ("a\r,b\rc", ["a\r", "b\rc"]),
        ('a,"', None),
        ('a"b,"c', None),
        ('a,"b"",c', None),
        ('"a,b\r', None),
    ],
)
def test_cells_of_a_line(line: str, cells: list[str] | None) -> None:
    assert cells_of(line, ",") == cells


def test_cells_that_do_not_fit_the_header_are_no_document() -> None:
    lines = pa.array([b"1,2", b"1", b"1,2,3"])
    assert documents(lines, ("a", "b"), ",").to_pylist() == [b'{"a":"1","b":"2"}', None, None]
    assert documents(lines, ("a", "a"), ",").null_count == 3


@pytest.mark.parametrize("value", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
def test_a_line_that_is_not_utf8_is_no_document(value: bytes) -> None:
    lines = pa.array([b"1," + value, "1,é".encode()])
    assert documents(lines, ("a", "b"), ",").to_pylist() == [None, '{"a":"1","b":"é"}'.encode()]


def test_a_record_of_a_file_without_a_header_needs_no_file(tmp_path: Path) -> None:
    bare = source(tmp_path, csv_fields=("id", "note"))
    assert as_document(bare, "gone.csv", b"1,two\r") == b'{"id":"1","note":"two"}'


LINES = [b"1,2", b"1", b"1,2,3", b"1,\xff", b"1,\xed\xa0\x80", '"é,",'.encode(), b" , "]
LINES += [b"1,web\r", b'1,"web"\r', b"1\r,2", b"\x0b", b"1\r", b'1,"open']
BLANK = [b"", b" ", b" \t", b"\r", b" \r"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "header", [b"a,b", b" a , b", b"\xef\xbb\xbfa,b", b"a,a", b",", b'"a",', b"a,\xff", b"a,b\r"]
)
def test_the_same_records_are_valid_with_and_without_line_breaks_in_cells(
    tmp_path: Path, header: bytes, end: bytes
) -> None:
    blank = [] if header.startswith(b"\xef") else BLANK
    content = end.join([*blank, header, *BLANK, *LINES])
    (tmp_path / "a.csv").write_bytes(content)
    names = csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    rows = [*csv_rows(io.BytesIO(content), ",")]
    alone = documents(pa.array(LINES), names, ",").to_pylist()
    assert [document for _, document in rows] == alone
    assert [value for value, _ in rows] == [
        line if document is None else document for line, document in zip(LINES, alone, strict=True)
    ]


def test_a_file_that_was_cut_in_a_quoted_cell_ends_with_an_unparsable_record() -> None:
    content = b'id,note\n1,"a\nb"\n2,"c\n3,d'
    (whole, cut) = csv_rows(io.BytesIO(content), ",")
    assert whole == (b'{"id":"1","note":"a\\nb"}',) * 2
    assert cut == (b'2,"c\n3,d', None)
    lines = pa.array(content.split(b"\n")[1:])
    found = documents(lines, ("id", "note"), ",").to_pylist()
    assert found == [None, None, None, b'{"id":"3","note":"d"}']


def test_no_line_fits_a_header_with_a_quote_that_is_not_closed(tmp_path: Path) -> None:
    """Its names may be cut: here, they are those of the cells id, "no te" and x."""
    (tmp_path / "a.csv").write_bytes(b'id,"no\nte",x\n1,a,2\n')
    names = csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    assert documents(pa.array([b'te",x', b"1,a,2"]), names, ",").to_pylist() == [None, None]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\r1,2\r3,4\r",
        b"a,b\r1,2",
        b'"a","b"\r"1","2"\r',
        b'"a\rb",c\r1,2\r',
        b"\xef\xbb\xbfa,b\r1,2\r",
    ],
)
def test_a_file_whose_lines_end_with_cr_is_not_read_as_one_header(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(pa.ArrowInvalid, match="lines end with CR"):
        csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    assert as_document(source(tmp_path), "a.csv", b"3,4") == b"3,4"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b\r\n1,2\r\n", ("a", "b")),
        (b"a,b\r\r\n1,2\n", ("a", "b")),
        (b'"a\rb",c\r\n1,2\r\n', ("a\rb", "c")),
        (b"a\r,b\n1,2\n", ("a", "b")),  # as ever: only a file without further lines is refused
    ],
)
def test_a_return_within_quotes_or_before_a_newline_is_no_line_end(
    tmp_path: Path, content: bytes, names: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv") == names
