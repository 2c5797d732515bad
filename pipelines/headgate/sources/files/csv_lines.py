"""Lines of CSV as JSON objects of texts.

Cells are read as Spark reads them. A quote within quotes is doubled. Blanks after a quoted cell do
not belong to it. A cell with text after its closing quote ends at the next delimiter, and its
quotes are text. A quoted cell without a closing quote ends with the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import msgspec
import pyarrow as pa

# In Java, `\r$` also finds a return before a final line terminator.
_RETURN = re.compile("\r(?=[\r\x85\u2028\u2029]?\\Z)")

encode = msgspec.json.Encoder().encode


def documents(lines: pa.Array, header: Sequence[str], delimiter: str) -> pa.Array:
    """Each line as a JSON object of its cells, without empty cells; null if the line is not UTF-8,
    if its cells do not fit the header, or if the header has a name twice."""
    document = _document_of(header, delimiter)
    return pa.array([document(line) for line in lines.to_pylist()], pa.binary())


def _document_of(header: Sequence[str], delimiter: str) -> Callable[[bytes], bytes | None]:
    document = under(header)

    def of(line: bytes) -> bytes | None:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return None
        return document(cells_of(without_return(text), delimiter))

    return of


def under(header: Sequence[str]) -> Callable[[Sequence[str]], bytes | None]:
    """A function from cells under a header to a JSON object, as in ``documents``."""
    width = len(header) if len(set(header)) == len(header) else -1

    def document(cells: Sequence[str]) -> bytes | None:
        if len(cells) != width:
            return None
        return encode({name: cell for name, cell in zip(header, cells, strict=True) if cell})

    return document


def names_of(line: str, delimiter: str) -> tuple[str, ...]:
    """The names of fields in the line of a header."""
    return tuple(name.strip() for name in cells_of(line, delimiter))


def without_return(line: str) -> str:
    """``line`` without a carriage return at its end."""
    return _RETURN.sub("", line) if "\r" in line else line


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of a line."""
    if '"' not in line:
        return line.split(delimiter)
    return [cell for cell, _ in _cells(line, delimiter)]


def is_open(line: str, delimiter: str) -> bool:
    """Whether the last cell has a quote that is not closed."""
    return '"' in line and [still_open for _, still_open in _cells(line, delimiter)][-1]


def _cells(line: str, delimiter: str) -> Iterator[tuple[str, bool]]:
    """Each cell, and whether its quote is not closed."""
    quoted, at = _quoted_cell(delimiter), 0
    while at <= len(line):
        end = line.find(delimiter, at)
        if end == at or not (found := quoted.match(line, at)):
            end = _or_end(line, end)
            yield line[at:end], False
        else:
            text, blanks, end = found[1].replace('""', '"'), found[2], found.end()
            if line[end : end + 1] not in ("", delimiter):
                end = _or_end(line, line.find(delimiter, end))
                text = f'"{text}"{blanks}{line[found.end() : end]}'
            is_open = blanks is None
            yield text or ('"' if is_open else ""), is_open
        at = end + 1


def _or_end(line: str, end: int) -> int:
    return len(line) if end < 0 else end


@lru_cache(maxsize=64)
def _quoted_cell(delimiter: str) -> re.Pattern[str]:
    """The text between quotes, and the blanks after them unless the quotes are not closed."""
    blank = f"(?!{re.escape(delimiter)})[\x01- \\x00]"
    return re.compile(f'"([^"]*+(?:""[^"]*+)*+)(?:"((?:{blank})*)|\\Z)')
