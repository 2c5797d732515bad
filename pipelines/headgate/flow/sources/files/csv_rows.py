"""Rows of CSV as JSON objects of texts, which is what the parser of records reads.

Rows whose quoted cells may contain line breaks are read one after the other. A row that is
malformed is its first line alone, and the next line begins another row: so a quote that is never
closed takes no other row with it. Without line breaks in cells, each line is a row.
"""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from headgate.flow.sources.excerpts import not_utf8
from headgate.flow.sources.files.contents import text_of
from headgate.flow.sources.files.csv_format import (
    Dialect,
    Header,
    MalformedCell,
    UnfitRow,
    declared_header,
    dialect_of,
    header_of,
)
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.lines import csv_blanks, is_blank
from headgate.lake.storage.files import Storage
from headgate.lake.storage.places import is_address, parent

LONGEST = 16 << 20
"""The most characters of a row of several lines. The quote of a longer one counts as not closed."""

_PROBE = 1 << 20  # bytes that are searched for the first line break
_LINE_END = re.compile(rb"\n|\r\n?")
_BREAK = re.compile("[^\n]*\n|[^\n]+")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # how surrogateescape represents bytes that are not UTF-8
_KEPT = ("utf-8", "surrogateescape")


class Row(NamedTuple):
    """``value`` and ``document`` are both the row as a JSON object without empty cells. If this is
    not possible, they are the row's bytes and None, and ``detail`` says why."""

    value: bytes
    document: bytes | None
    detail: str | None


def csv_rows(text: Any, source: FilesSource) -> Iterator[Row]:
    """The rows of ``text``, a file of bytes, without its header. Blank lines are skipped. Raises
    WrongContentError if the header is wrong."""
    header = None if source.csv_header else declared_header(source)
    for line, row, cells in _rows(_lines(text), dialect_of(source)):
        if header is None:
            header = header_of(row.encode(*_KEPT), source)
        else:
            yield _read(line, row, cells, header)


Cells = list[str] | MalformedCell
"""The cells of a row, or why they cannot be read."""


def _read(line: int, row: str, cells: Cells, header: Header) -> Row:
    try:
        if not row.isascii() and _NOT_UTF8.search(row):
            row.encode(*_KEPT).decode()
        if isinstance(cells, MalformedCell):
            raise cells
        document = header.document(cells)
    except (UnicodeDecodeError, MalformedCell, UnfitRow) as error:
        problem = not_utf8(error) if isinstance(error, UnicodeDecodeError) else str(error)
        separator = ", " if isinstance(error, MalformedCell) else ": "
        return Row(row.encode(*_KEPT), None, f"line {line}{separator}{problem}")
    return Row(document, document, None)


def _rows(lines: Iterator[str], dialect: Dialect) -> Iterator[tuple[int, str, Cells]]:
    """Each row with its line, from 1 on."""
    blanks = f"{csv_blanks(dialect.delimiter)}\n"
    ahead, number = _Ahead(lines, dialect), 0
    while (line := ahead.take()) is not None:
        number += 1
        # Nearly no line is blank, and this looks at one character of the others.
        if line.isspace() and not line.strip(blanks):
            continue
        text = line.removesuffix("\n")
        try:
            yield number, text, dialect.cells(text)
        except MalformedCell as error:
            if not error.is_open:
                yield number, text, error
            elif (problem := ahead.problem(number, len(line))) is not None:
                yield number, text, MalformedCell(error.number, problem)
            else:
                more = ahead.take_continuation()
                text = "".join([line, *more]).removesuffix("\n")
                yield number, text, dialect.cells(text)
                number += len(more)


class _Ahead:
    """The lines after the row that is read. A row may need many lines before it turns out that its
    quote is not closed, and then all these lines are read again, as rows. Each line is therefore
    examined once as the continuation of a row: it does not matter in which row the quote was
    opened.

    The first ``_inside`` lines read ahead are within quotes, if a quote is open where they begin.
    ``_end`` is what is after these: a line that closes the quote, a line that is malformed if it
    does, or the end of the file. None if it is not known.
    """

    def __init__(self, lines: Iterator[str], dialect: Dialect) -> None:
        self._lines, self._dialect = lines, dialect
        self._read = deque[str]()
        self._inside = self._size = 0
        self._end: Literal["closed", "end of file"] | MalformedCell | None = None

    def take(self) -> str | None:
        """The next line; None at the end."""
        if not self._read:
            return next(self._lines, None)
        line = self._read.popleft()
        if self._inside:
            self._inside -= 1
            self._size -= len(line)
        else:
            self._end = None
        return line

    def problem(self, number: int, size: int) -> str | None:
        """Why the quote that is open in line ``number``, of ``size`` characters, is not closed;
        None if it is."""
        while self._end is None and size + self._size <= LONGEST:
            self._examine_next()
        if size + self._size > LONGEST:
            return f"the quote that opens here is not closed within {LONGEST >> 20} MiB"
        if self._end == "closed":
            return None
        why = "the file ends"
        if isinstance(self._end, MalformedCell):
            why = f"line {number + self._inside + 1} has {self._end.problem}"
        return f"the quote that opens here is not closed: {why}"

    def take_continuation(self) -> list[str]:
        """The lines up to the one that closes the quote."""
        taken = [*self._read]
        self._read.clear()
        self._inside = self._size = 0
        self._end = None
        return taken

    def _examine_next(self) -> None:
        line = next(self._lines, None)
        if line is None:
            self._end = "end of file"
            return
        self._read.append(line)
        try:
            self._dialect.cells(f'"{line}'.removesuffix("\n"))
            self._end = "closed"
        except MalformedCell as error:
            if error.is_open:
                self._inside += 1
                self._size += len(line)
            else:
                self._end = error


def _lines(text: Any) -> Iterator[str]:
    """The lines, each with a newline as its line break. The file's first line break, or a newline,
    ends a line."""
    buffered = io.BufferedReader(text, _PROBE)
    end = _line_end(buffered.peek(_PROBE))
    lines = io.TextIOWrapper(buffered, "utf-8-sig", "surrogateescape", newline=end)
    if end == "\n":
        yield from lines
        return
    for line in lines:
        ended = f"{line.removesuffix(end)}\n" if line.endswith(end) else line
        yield from _BREAK.findall(ended)


def _line_end(text: bytes) -> str:
    found = _LINE_END.search(text)
    return found[0].decode() if found else "\n"


_MULTILINE = "cells with line breaks need csv: {multiline: true}"


def line_documents(lines: pa.Array, header: Header, dialect: Dialect) -> tuple[pa.Array, pa.Array]:
    """Each line as a JSON object of its cells, without empty cells. If this is not possible, the
    object is null, and the detail, which is otherwise null, says why."""
    found = list[bytes | None]()
    details = dict[int, str]()
    for line in lines.to_pylist():
        try:
            found.append(header.document(dialect.cells(line.decode())))
        except (UnicodeDecodeError, MalformedCell, UnfitRow) as error:
            details[len(found)] = _detail(error)
            found.append(None)
    texts = pa.nulls(len(found), pa.string())
    if details:
        texts = pa.array([details.get(row) for row in range(len(found))], pa.string())
    return pa.array(found, pa.binary()), texts


def _detail(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return not_utf8(error)
    is_open = isinstance(error, MalformedCell) and error.is_open
    return f"{error}; {_MULTILINE}" if is_open else str(error)


def csv_header(landing: Storage, source: FilesSource, path: str) -> Header:
    """The header of a CSV file: its first line that is not blank. Without such a line, it has no
    names. Raises OSError, and WrongContentError if the header is wrong."""
    if not source.csv_header:
        return declared_header(source)
    blanks = csv_blanks(source.csv_delimiter)
    with text_of(landing, path) as text:
        lines = iter(text.opened.readline, b"")
        first = next((line for line in lines if not is_blank(line, blanks)), b"")
    return header_of(first.rstrip(b"\n"), source) if first else Header((), 0)


def record_document(source: FilesSource, where: str | None, value: bytes) -> bytes:
    """A record of a file as JSON, as bronze reads it. A CSV line is returned unchanged if its file
    is missing, or if it was unparsable in bronze, so that it stays so."""
    if source.format != "csv" or source.csv_multiline or where is None or _is_object(value):
        return value
    with suppress(OSError, EOFError, ValueError):
        cells = dialect_of(source).cells(value.decode())
        return _header(source, where).document(cells)
    return value


def _is_object(value: bytes) -> bool:
    """Whether a record is the document of an earlier replay, not a line of cells."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(value), dict)
    return False


@lru_cache(maxsize=64)
def _header(source: FilesSource, path: str) -> Header:
    landing = Storage(parent(path)) if is_address(path) else Storage(source.path)
    return csv_header(landing, source, path.rpartition("/")[2] if is_address(path) else path)
