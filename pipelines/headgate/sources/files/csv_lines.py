"""Lines of CSV as JSON objects of texts.

Cells are read as Spark reads them. A quote within quotes is doubled. Blanks after a quoted cell do
not belong to it. A cell with text after its closing quote ends at the next delimiter, and its
quotes are text. Unlike Spark, a line whose last quote is not closed has no cells: it was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import pyarrow as pa

# In Java, `\r$` also finds a return before a final line terminator.
_RETURN = re.compile("\r(?=[\r\x85\u2028\u2029]?\\Z)")
_QUOTED = re.compile('"[^"]*"')

encode = msgspec.json.Encoder().encode


def documents(lines: pa.Array, header: Sequence[str], delimiter: str) -> pa.Array:
    """Each line as a JSON object of its cells, without empty cells; null if the line is not UTF-8,
    if a quote is not closed, if its cells do not fit the header, or if the header has a name
    twice."""
    document = document_of(header, delimiter)

    def of(line: bytes) -> bytes | None:
        try:
            return document(line.decode())
        except UnicodeDecodeError:
            return None

    return pa.array(map(of, lines.to_pylist()), pa.binary())


def document_of(header: Sequence[str], delimiter: str) -> Callable[[str], bytes | None]:
    """A function from a row under a header to a JSON object, as in ``documents``."""
    width = len(header) if len(set(header)) == len(header) else -1

    def document(row: str) -> bytes | None:
        cells = cells_of(row, delimiter)
        if cells is None or len(cells) != width:
            return None
        return encode({name: cell for name, cell in zip(header, cells, strict=True) if cell})

    return document


def names_of(line: str, delimiter: str) -> tuple[str, ...]:
    """The names of fields in the line of a header; none if a quote is not closed, so that no row
    fits it."""
    return tuple(name.strip() for name in cells_of(line, delimiter) or ())


def has_inner_return(line: str) -> bool:
    """Whether a line has a carriage return that is neither at its end nor in a quoted cell."""
    return "\r" in _QUOTED.sub("", line.rstrip())


def cells_of(line: str, delimiter: str) -> list[str] | None:
    """The cells of a line without its carriage return; None if a quote is not closed."""
    if "\r" in line:
        line = _RETURN.sub("", line)
    if '"' not in line:
        return line.split(delimiter)
    cells, still_open = _cells(line, delimiter)
    return None if still_open else cells


def is_open(line: str, delimiter: str) -> bool:
    """Whether the last cell has a quote that is not closed."""
    return '"' in line and _cells(line, delimiter)[1]


def _cells(line: str, delimiter: str) -> tuple[list[str], bool]:
    """The cells, and whether the last one has a quote that is not closed."""
    quoted, at = _quoted_cell(delimiter), 0
    cells, still_open = list[str](), False
    while at <= len(line):
        end = line.find(delimiter, at)
        if end == at or not (found := quoted.match(line, at)):
            end = _or_end(line, end)
            cells.append(line[at:end])
        else:
            text, blanks, end = found[1].replace('""', '"'), found[2], found.end()
            if line[end : end + 1] not in ("", delimiter):
                end = _or_end(line, line.find(delimiter, end))
                text = f'"{text}"{blanks}{line[found.end() : end]}'
            still_open = blanks is None
            cells.append(text)
        at = end + 1
    return cells, still_open


def _or_end(line: str, end: int) -> int:
    return len(line) if end < 0 else end


@lru_cache(maxsize=64)
def _quoted_cell(delimiter: str) -> re.Pattern[str]:
    """The text between quotes, and the blanks after them unless the quotes are not closed."""
    blank = f"(?!{re.escape(delimiter)})[\x01- \\x00]"
    return re.compile(f'"([^"]*+(?:""[^"]*+)*+)(?:"((?:{blank})*)|\\Z)')
