"""Rows of CSV whose quoted cells may contain line breaks, as JSON objects of texts."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from headgate.sources.files.csv_lines import document_of, is_open, names_of
from headgate.sources.files.lines import csv_blanks

_PROBE = 1 << 20  # bytes that are searched for the first line break
_LINE_END = re.compile(rb"\n|\r\n?")
_BREAK = re.compile("[^\n]*\n|[^\n]+")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # how surrogateescape represents bytes that are not UTF-8


def csv_rows(
    text: Any, delimiter: str, fields: Sequence[str] = ()
) -> Iterator[tuple[bytes, bytes | None]]:
    """The value and the document of each row: both are the row as a JSON object without empty
    cells. If a row is not UTF-8, does not fit the names of its cells, or has a quote that is not
    closed, they are its bytes and None. The names are ``fields``, or those in the first row, the
    header. Blank lines are skipped. ``text`` is a file of bytes."""
    rows = _records(_lines(text), delimiter)
    names = fields or names_of(next(rows, "").encode(*_KEPT).decode(*_SHOWN), delimiter)
    document = document_of(names, delimiter)
    for row in rows:
        is_text = row.isascii() or not _NOT_UTF8.search(row)
        found = document(row) if is_text else None
        yield (row.encode(*_KEPT), None) if found is None else (found, found)


_KEPT = ("utf-8", "surrogateescape")
_SHOWN = ("utf-8", "replace")


def _records(lines: Iterator[str], delimiter: str) -> Iterator[str]:
    blanks = f"{csv_blanks(delimiter)}\n"
    for line in lines:
        # Nearly no line is, and this looks at one character of the others.
        if line.isspace() and not line.strip(blanks):
            continue
        record, is_whole = _completed(line, lines, delimiter)
        # At the end of the file, an open cell keeps its line breaks.
        yield record.removesuffix("\n") if is_whole else record


def _completed(line: str, lines: Iterator[str], delimiter: str) -> tuple[str, bool]:
    """The record that begins with ``line``, and whether its quotes are closed."""
    if not is_open(line, delimiter):
        return line, True
    read = [line]
    for more in lines:
        read.append(more)
        # The line continues within quotes, so only the line is checked. To check the whole record
        # again would take time that grows with the square of its length.
        if not is_open(f'"{more}', delimiter):
            return "".join(read), True
    return "".join(read), False


def _lines(text: Any) -> Iterator[str]:
    """The lines, each with a newline as its line break. The file's first line break, or a newline,
    ends a line."""
    buffered = io.BufferedReader(text, _PROBE)
    end = _line_end(buffered.peek(_PROBE))
    for line in io.TextIOWrapper(buffered, "utf-8-sig", "surrogateescape", newline=end):
        ended = f"{line.removesuffix(end)}\n" if line.endswith(end) else line
        yield from _BREAK.findall(ended)


def _line_end(text: bytes) -> str:
    found = _LINE_END.search(text)
    return found[0].decode() if found else "\n"
