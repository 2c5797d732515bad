"""Rows of CSV whose quoted cells may contain line breaks, as JSON objects of texts."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from headgate.sources.files.csv_lines import cells_of, encode, is_open

_PROBE = 1 << 20  # bytes in which the first line break is looked for
_LINE_END = re.compile(rb"\n|\r\n?")
_BREAK = re.compile("[^\n]*\n|[^\n]+")


def csv_rows(text: Any, delimiter: str) -> Iterator[bytes]:
    """Each row under the header as a JSON object, without empty cells. Cells beyond the header are
    left out, and so are lines without any character. ``text`` is a file of bytes."""
    rows = _records(_lines(text), delimiter)
    header = _names([cell for row in islice(rows, 1) for cell in row])
    for cells in rows:
        yield encode({name: cell for name, cell in zip(header, cells, strict=False) if cell})


def _names(header: Sequence[str]) -> list[str]:
    """Names that are unique: Spark numbers those that are empty or equal."""
    return [
        f"_c{n}" if not name else f"{name}{n}" if header.count(name) > 1 else name
        for n, name in enumerate(header)
    ]


def _records(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    for line in lines:
        if line == "\n":
            continue
        record, is_whole = _completed(line, lines, delimiter)
        # At the end of the file, an open cell keeps its line breaks.
        yield cells_of(record.removesuffix("\n") if is_whole else record, delimiter)


def _completed(line: str, lines: Iterator[str], delimiter: str) -> tuple[str, bool]:
    """The record that begins with ``line``, and whether its quotes are closed."""
    if not is_open(line, delimiter):
        return line, True
    read = [line]
    for more in lines:
        read.append(more)
        # The line goes on within quotes. To look at the record from its start would take time that
        # grows with the square of its length.
        if not is_open(f'"{more}', delimiter):
            return "".join(read), True
    return "".join(read), False


def _lines(text: Any) -> Iterator[str]:
    """The lines, which end in a newline: a file's first line break is that of all its lines."""
    buffered = io.BufferedReader(text, _PROBE)
    end = _line_end(buffered.peek(_PROBE))
    for line in io.TextIOWrapper(buffered, "utf-8-sig", "replace", newline=end):
        ended = f"{line.removesuffix(end)}\n" if line.endswith(end) else line
        yield from _BREAK.findall(ended)


def _line_end(text: bytes) -> str:
    found = _LINE_END.search(text)
    return found[0].decode() if found else "\n"
