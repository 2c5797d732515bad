"""The cells of rows of CSV, in the dialects of those who write it."""

from __future__ import annotations

import pytest

from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.csv_format import Dialect, MalformedCell, header_of
from headgate.flow.sources.files.declared import FilesSource

COMMA = Dialect()
ESCAPED = Dialect(escape="\\")


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("", [""]),
        ("a,b", ["a", "b"]),
        (",", ["", ""]),
        ("a,b,", ["a", "b", ""]),
        ('"a,""b""" ,', ['a,"b"', ""]),
        ('"a"\t \r,b', ["a", "b"]),
        ('5" pipe,"c"', ['5" pipe', "c"]),
        ('a,5"', ["a", '5"']),
        (' "a,b"', [' "a', 'b"']),
        ('"",""', ["", ""]),
        ('""""', ['"']),
        ("a\r,b\0c\r", ["a\r", "b\0c"]),
        ('"a\\",\\N', ["a\\", "\\N"]),
    ],
)
def test_cells_of_a_row(row: str, cells: list[str]) -> None:
    assert COMMA.cells(row) == cells


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("a\\b,\\,c\\", ["a\\b", "\\", "c\\"]),
        ('"a\\\\b","c"', ["a\\b", "c"]),
        ('"say ""hi"""', ['say "hi"']),
        ('"\\0\\n\\x",\\0', ["\0\\n\\x", "\\0"]),
        ('\\N,"\\N",\\\\N,N', ["", "\\N", "\\\\N", "N"]),
        ('a"\\N,\\N', ['a"\\N', ""]),
        ('"a\\,b\\\nc\\\r"', ["a,b\nc\r"]),
    ],
)
def test_an_escape_counts_within_quotes(row: str, cells: list[str]) -> None:
    assert ESCAPED.cells(row) == cells


SPARK = r"""1,"say \"hi\""
2,a\b
3,"a\\b,c"
4,"x\\\"y"
5,"C:\\,"
6,ends\
7,"q\"ends\\"
8,
9,""
10,"\\0\"z"
11,"a\\\\\"b"
12,"\\n,\""
"""
"""What Spark 4 writes by default."""


def test_a_dump_of_spark() -> None:
    assert [ESCAPED.cells(row)[1] for row in SPARK.splitlines()] == [
        *('say "hi"', "a\\b", "a\\b,c", 'x\\"y', "C:\\,", "ends\\", 'q"ends\\', "", ""),
        *('\\0"z', 'a\\\\"b', '\\n,"'),
    ]


POSTGRES = r"""1,"say \"hi\"",t
2,a\b,f
3,"a\\b,c",
4,"x\\\"y",
5,"",
"""
"""COPY ... TO ... WITH (FORMAT csv, ESCAPE '\')"""


def test_a_dump_of_postgresql() -> None:
    assert [ESCAPED.cells(row) for row in POSTGRES.splitlines()] == [
        ["1", 'say "hi"', "t"],
        ["2", "a\\b", "f"],
        ["3", "a\\b,c", ""],
        ["4", 'x\\"y', ""],
        ["5", "", ""],
    ]


def test_a_dump_of_mysql() -> None:
    r"""SELECT ... INTO OUTFILE ... FIELDS TERMINATED BY ',' ENCLOSED BY '"' ESCAPED BY '\\'"""
    row = '"1","say \\"hi\\"","a\\\\b","line\\\nbreak",\\N,"\\0",""'
    assert ESCAPED.cells(row) == ["1", 'say "hi"', "a\\b", "line\nbreak", "", "\0", ""]


@pytest.mark.parametrize(
    ("dialect", "row", "says"),
    [
        (
            COMMA,
            '1,"say "hi""',
            "cell 2: text after the closing quote, 'hi\"\"'; write a quote within a cell twice",
        ),
        (
            COMMA,
            '"say \\"hi\\"",2',
            "cell 1: text after the closing quote, 'hi\\\"\",2'; write a quote within a cell "
            'twice, or declare csv: {escape: "\\\\"}',
        ),
        (
            ESCAPED,
            '1,"a" b,"c"',
            "cell 2: text after the closing quote, 'b,\"c\"'; write a quote within a cell twice",
        ),
        (COMMA, '1,"2', "cell 2: the quote that opens here is not closed"),
        (COMMA, '1,"', "cell 2: the quote that opens here is not closed"),
        (COMMA, '1,"2"",3', "cell 2: the quote that opens here is not closed"),
        (ESCAPED, '"2\\",3', "cell 1: the quote that opens here is not closed"),
        (ESCAPED, '"2\\', "cell 1: the quote that opens here is not closed"),
    ],
)
def test_a_malformed_cell_is_named(dialect: Dialect, row: str, says: str) -> None:
    with pytest.raises(MalformedCell) as error:
        dialect.cells(row)
    assert str(error.value) == says
    assert error.value.is_open is ("not closed" in says)


@pytest.mark.parametrize("delimiter", ["\t", " ", "|", "]", "^", "\\"])
def test_any_delimiter(delimiter: str) -> None:
    row = f'a{delimiter}"b{delimiter}c"{delimiter}'
    assert Dialect(delimiter).cells(row) == ["a", f"b{delimiter}c", ""]
    if delimiter != "\\":
        assert Dialect(delimiter, "\\").cells(row) == ["a", f"b{delimiter}c", ""]


SOURCE = FilesSource("/landing", "csv", csv_fields=("id", "at", "price", "size", "note", "more"))


@pytest.mark.parametrize(
    ("line", "names", "width"),
    [
        (b"id,at\r", ("id", "at"), 2),
        (b"\xef\xbb\xbf\"id\",' at '", ("id", "' at '"), 2),
        (b"other,id,,", ("other", "id"), 4),
        (b"id , ", ("id",), 2),
    ],
)
def test_a_header(line: bytes, names: tuple[str, ...], width: int) -> None:
    header = header_of(line, SOURCE)
    assert (header.names, header.width) == (names, width)


def test_a_name_that_is_declared_with_blanks_keeps_them() -> None:
    """Its column would else be null in all records."""
    source = FilesSource("/landing", "csv", csv_fields=("id", " at"))
    assert header_of(b" id, at,at ", source).names == ("id", " at", "at")


EXPECTED = "expected some of id, at, price, size, note, ..."


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            b"id;at;price",
            f"the header has 1 name, 'id;at;price'; {EXPECTED}; declare csv: {{delimiter: \";\"}}",
        ),
        (
            b'"id"\t"at"',
            'the header, \'"id"\\t"at"\', is malformed: declare csv: {delimiter: "\\t"}',
        ),
        (
            b"sep=;",
            f"the header has 1 name, 'sep=;'; {EXPECTED}; remove the line before the header",
        ),
        (
            b"# exported, today",
            f"the header has 2 names, '# exported', 'today'; {EXPECTED}; remove the line before "
            "the header",
        ),
        (
            b"ID,At",
            f"the header has 2 names, 'ID', 'At'; {EXPECTED}; write the names as they are "
            "declared, in the same case",
        ),
        (
            b"1,2,3,4,5,6,7",
            f"the header has 7 names, '1', '2', '3', '4', '5', ...; {EXPECTED}; add a header with "
            "these names, or declare csv: {header: false}",
        ),
        (
            b",,",
            f"the header has no name; {EXPECTED}; add a header with these names, or declare csv: "
            "{header: false}",
        ),
        (b"id,at,id", "the header has the name 'id' twice; rename one"),
        (b"x,id,x,y,y", "the header has the name 'x', 'y' twice; rename one"),
        (
            b"id,,,at,",
            "name 2 of the header is empty, and names follow: 'id,,,at,'; give each column a name",
        ),
        (
            "id,Größe".encode("latin-1"),
            "the header is not UTF-8: the byte 0xF6 after 'id,Gr'; convert the file to UTF-8",
        ),
        (
            b'id,"at',
            "the header, 'id,\"at', is malformed: cell 2: the quote that opens here is not closed",
        ),
    ],
)
def test_a_wrong_header_is_told_with_its_remedy(line: bytes, says: str) -> None:
    with pytest.raises(WrongContentError) as error:
        header_of(line, SOURCE)
    assert str(error.value) == says
