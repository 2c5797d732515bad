"""Rows of CSV whose quoted cells may contain line breaks, as JSON objects of texts.

A row that is malformed is its first line alone, and the next line begins another row: so a quote
that is never closed takes no other row with it.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from headgate.flow.sources.details import not_utf8
from headgate.flow.sources.files.csv_cells import Dialect, MalformedCell
from headgate.flow.sources.files.csv_header import Header, UnfitRow, declared, dialect_of, header_of
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.lines import csv_blanks

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
    header = None if source.csv_header else declared(source)
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
