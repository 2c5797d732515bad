"""Wrong headers of CSV, and what their file is set aside for."""

from __future__ import annotations

import pytest

from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.csv_header import header_of
from headgate.flow.sources.files.declared import FilesSource

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
