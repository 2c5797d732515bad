"""Rows of CSV with line breaks in cells. A row with wrong quotes takes no other row with it."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.files import csv_rows as reading
from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.csv_format import Dialect, Header, MalformedCell
from headgate.flow.sources.files.csv_rows import (
    Row,
    csv_header,
    csv_rows,
    line_documents,
    record_document,
)
from headgate.flow.sources.files.declared import FilesSource
from headgate.lake.storage.files import Storage


def rows(content: bytes, **csv: Any) -> list[Row]:
    return [*csv_rows(io.BytesIO(content), FilesSource("/landing", "csv", **csv))]


def notes(content: bytes, **csv: Any) -> dict[str, str | None]:
    """The note of each row that was read, by id, and the detail of each other row, by its bytes."""
    found = {}
    for row in rows(content, **csv):
        document = json.loads(row.document) if row.document else None
        if document is None:
            found[row.value.decode()] = row.detail
        else:
            found[document["id"]] = document.get("note")
    return found


def test_an_open_quote_takes_no_row_with_it() -> None:
    content = b"""id;kind;n;price;note
r1;T;1;1.00;"two
lines"
r2;T;1;1.00;"12 inch
r3;T;1;1.00;x
r4;T;1;1.00;"y"
r5;T;1;1.00;"say \\"hi\\""
r6;T;1;1.00;z
"""
    twice = "write a quote within a cell twice"
    assert notes(content, csv_delimiter=";") == {
        "r1": "two\nlines",
        'r2;T;1;1.00;"12 inch': "line 4, cell 5: the quote that opens here is not closed: line 6 "
        f"has text after the closing quote, 'y\"'; {twice}",
        "r3": "x",
        "r4": "y",
        'r5;T;1;1.00;"say \\"hi\\""': "line 7, cell 5: text after the closing quote, 'hi\\\"\"'; "
        f'{twice}, or declare csv: {{escape: "\\\\"}}',
        "r6": "z",
    }
    assert notes(content.replace(b"\n", b"\r\n"), csv_delimiter=";").keys() == {
        *("r1", 'r2;T;1;1.00;"12 inch', "r3", "r4", 'r5;T;1;1.00;"say \\"hi\\""', "r6")
    }


def test_a_file_that_was_cut_in_a_quoted_cell_ends_with_an_unparsable_record() -> None:
    content = b'id,note\n1,"a\nb"\n2,"c\n3,d\n4,e'
    assert notes(content) == {
        "1": "a\nb",
        '2,"c': "line 4, cell 2: the quote that opens here is not closed: the file ends",
        "3": "d",
        "4": "e",
    }


def test_details_tell_the_line() -> None:
    content = b'id,note\n\n1,"a\nb"\n2\n3,Z\xfcrich\n4,"c\nd",\n5,"e\n\xff"\n'
    assert [(row.value, row.detail) for row in rows(content)[1:]] == [
        (b"2", "line 5: 1 cell, the header has 2 names"),
        (b"3,Z\xfcrich", "line 6: not UTF-8: the byte 0xFC after '3,Z'"),
        (b'4,"c\nd",', "line 7: 3 cells, the header has 2 names"),
        (b'5,"e\n\xff"', "line 9: not UTF-8: the byte 0xFF after '5,\"e\\n'"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_dumps_with_an_escape_have_line_breaks_in_cells(end: str) -> None:
    mysql = f'"1","a\\{end}b \\"c\\""{end}"2",\\N{end}"3","d\\\\"{end}'
    postgres = f'4,"a{end}b \\"c\\\\"{end}'
    found = rows(
        (mysql + postgres).encode(),
        csv_escape="\\",
        csv_header=False,
        csv_fields=("id", "note"),
    )
    assert [json.loads(row.document or b"") for row in found] == [
        {"id": "1", "note": 'a\nb "c"'},
        {"id": "2"},
        {"id": "3", "note": "d\\"},
        {"id": "4", "note": 'a\nb "c\\'},
    ]


def test_a_row_of_many_lines_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST", 1 << 20)
    line = b"x" * 999 + b"\n"
    whole = b'id,note\n1,"' + line * 1040 + b'"\n2,b\n'
    assert [*notes(whole)] == ["1", "2"]
    # The lines of a row that is too long are rows.
    found = rows(b'id,note\n1,"' + line * 1060 + b'"\n2,b\n')
    assert found[0].value == b'1,"' + b"x" * 999
    assert found[0].detail == "line 2, cell 2: the quote that opens here is not closed within 1 MiB"
    assert [row.detail for row in found[1:1060]] == [
        f"line {number}: 1 cell, the header has 2 names" for number in range(3, 1062)
    ]
    assert found[-1].document == b'{"id":"2","note":"b"}'


def test_quotes_that_each_open_a_cell_are_read_in_linear_time() -> None:
    """Each line opens a quote as a row, and leaves it open as the continuation of one."""
    content = b"id,note\n" + b'a","b\n' * 40_000
    began = time.process_time()
    found = rows(content)
    took = time.process_time() - began
    assert len(found) == 40_000
    assert {row.value for row in found} == {b'a","b'}
    assert took < 5, "it took minutes when each row read all lines after it"


PIECES = st.sampled_from(["a", ",", '"', '""', "\n", "\n", '\n"', '",', "\\", " ", "x,y\n"])


def slowly(text: str, escape: str) -> list[list[str] | str]:
    """The rows by the rule itself: the shortest run of lines that has cells, or else one line."""
    dialect = Dialect(",", escape)
    lines, found, at = text.split("\n"), list[list[str] | str](), 0
    while at < len(lines):
        if not lines[at].strip(" "):
            at += 1
            continue
        found.append(lines[at])
        for end in range(at + 1, len(lines) + 1):
            try:
                found[-1], at = dialect.cells("\n".join(lines[at:end])), end - 1
            except MalformedCell as error:
                if error.is_open:
                    continue
            break
        at += 1
    return found


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["", "\\"]))
def test_rows_are_those_of_the_rule(text: str, escape: str) -> None:
    dialect = Dialect(",", escape)
    given = reading._rows(iter(reading._BREAK.findall(text)), dialect)
    found = [row if isinstance(cells, MalformedCell) else cells for _, row, cells in given]
    assert found == slowly(text, escape)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\n \nsep=;\nid,note\n1,a\n", "the header has 1 name, 'sep=;'"),
        (b'id,"no\n1,a\n', "the header, 'id,\"no', is malformed: cell 2"),
        (b"id,id\n", "the header has the name 'id' twice"),
        (b"id,Gr\xf6\xdfe\n", "the header is not UTF-8: the byte 0xF6"),
    ],
)
def test_a_wrong_header_is_told(content: bytes, says: str) -> None:
    with pytest.raises(WrongContentError, match=says):
        rows(content, csv_fields=("id", "note"))


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"id,note", b'"id","no\nte"\n'])
def test_a_file_without_rows_is_fine(content: bytes) -> None:
    assert rows(content) == []


def test_lines_that_end_with_cr_below_one_that_ends_with_lf_are_no_header() -> None:
    with pytest.raises(WrongContentError, match="lines end with CR; convert the file to LF$"):
        rows(b"\nid,note\r1,a\r2,b", csv_multiline=True)


ID_NOTE = Header(("id", "note"), 2)


def source(folder: Path, **more: object) -> FilesSource:
    return FilesSource(path=str(folder), format="csv", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_cells_have_the_names_of_their_files_header(tmp_path: Path, name: str) -> None:
    content = "\ufeffid; note ;level\n".encode()
    packed = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    document = record_document(source(tmp_path, csv_delimiter=";"), name, b'a;"x ""y"";z";\r')
    assert json.loads(document) == {"id": "a", "note": 'x "y";z'}


def test_a_first_cell_may_begin_with_a_brace(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    assert json.loads(record_document(source(tmp_path), "a.csv", b"{x,y")) == {
        "id": "{x",
        "note": "y",
    }


@pytest.mark.parametrize(
    "line", ['"a" ,c', 'a"b,"c"', "a\rb,c", f"{'x' * 200_000},c", '"a,b"",c",', "a,b\r"]
)
def test_a_line_that_is_replayed_has_the_cells_that_it_had(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,note\n")
    (first,) = line_documents(pa.array([line.encode()]), ID_NOTE, Dialect())[0].to_pylist()
    again = record_document(source(tmp_path), "a.csv", line.encode())
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
    assert record_document(source(tmp_path), where, value) == value


def test_a_line_that_cannot_be_read_has_a_detail() -> None:
    lines = [b"1,2", b"1", b"1,2,", b'1,"2', b'1,"2"x', b"1,Z\xfcrich", b"\xed\xa0\x80,2", b","]
    found, says = line_documents(pa.array(lines), ID_NOTE, Dialect())
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
    found, says = line_documents(pa.array(lines), Header(("a", "b"), 4), Dialect())
    assert found.to_pylist() == [b'{"a":"1","b":"2"}'] * 4 + [None] * 3
    assert says.to_pylist()[4:] == [
        "cell 3: '3', under an empty name",
        "5 cells, the header has 4 names",
        "1 cell, the header has 4 names",
    ]


def test_a_record_of_a_file_without_a_header_needs_no_file(tmp_path: Path) -> None:
    bare = source(tmp_path, csv_header=False, csv_fields=("id", "note"))
    assert record_document(bare, "gone.csv", b"1,two\r") == b'{"id":"1","note":"two"}'


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
    alone, says = (each.to_pylist() for each in line_documents(pa.array(LINES), names, Dialect()))
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
    assert record_document(source(tmp_path), "a.csv", b"3,4") == b"3,4"


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
