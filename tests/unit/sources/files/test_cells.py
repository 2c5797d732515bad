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
    "line", ['"a"b,c', '"a" ,c', 'a"b,"c', "a\rb,c", f"{'x' * 200_000},c", '"a,b"",c",', "a,b\r"]
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
        ("a.csv", b"\xff,b"),
        ("a.csv", b'{"id": "a"}'),
        (None, b"a,b"),
    ],
)
def test_what_cannot_be_taken_apart_stays(tmp_path: Path, where: str | None, value: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    assert as_document(source(tmp_path), where, value) == value


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("a,b", ["a", "b"]),
        (",", ["", ""]),
        ('"a,""b""" ,', ['a,"b"', ""]),
        ('"a"b,c', ['"a"b', "c"]),
        ('a"b,"c', ['a"b', "c"]),
        ('a,"', ["a", '"']),
        ('"",""\r', ["", ""]),
    ],
)
def test_cells_of_a_line(line: str, cells: list[str]) -> None:
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
    assert as_document(bare, "gone.csv", b"1,two\r") == b'{"id": "1", "note": "two"}'


LINES = [b"1,2", b"1", b"1,2,3", b"1,\xff", b"1,\xed\xa0\x80", '"é,",'.encode(), b" , "]


@pytest.mark.parametrize(
    "header", [b"a,b", b" a , b", b"\xef\xbb\xbfa,b", b"a,a", b",", b'"a",', b"a,\xff"]
)
def test_the_same_records_are_valid_with_and_without_line_breaks_in_cells(
    tmp_path: Path, header: bytes
) -> None:
    (tmp_path / "a.csv").write_bytes(header + b"\n")
    names = csv_header(Storage(str(tmp_path)), source(tmp_path), "a.csv")
    rows = [*csv_rows(io.BytesIO(b"\n".join([header, *LINES])), ",")]
    alone = documents(pa.array(LINES), names, ",").to_pylist()
    assert [document for _, document in rows] == alone
    assert [value for value, _ in rows] == [
        line if document is None else document for line, document in zip(LINES, alone, strict=True)
    ]
