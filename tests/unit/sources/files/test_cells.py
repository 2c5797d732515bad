"""CSV lines as JSON objects, for people who mend them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.sources.files.cells import as_document
from headgate.sources.files.csv_lines import cells_of, documents
from headgate.sources.files.declared import FilesSource


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
    lines = pa.array([b"1,2", b"1", b"1,2,3", b",\xff"])
    assert documents(lines, ("a", "b"), ",").to_pylist() == [
        b'{"a":"1","b":"2"}',
        None,
        None,
        '{"b":"\ufffd"}'.encode(),
    ]
    assert documents(lines, ("a", "a"), ",").null_count == 4
