"""The lines of a text, in blocks. Blank lines do not count.

A line that begins at byte p belongs to the range (start, end] with start < p <= end; the line at 0
belongs to the first range. A line may end after its range. This is how Hadoop splits a text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOCK = 4 << 20
"""About how many bytes of text a block has. A longer line is a block of its own."""

END = sys.maxsize
"""The end of a range that reaches to the end of a text of unknown length."""

BLANKS = " \t\r"
"""A line that has only these is blank; see ``csv_blanks`` for CSV."""

_REST = 64 << 10  # bytes that are read at once to find the end of the last line
_MOST = (1 << 31) - 1  # bytes in one Arrow array
_MARK = b"\xef\xbb\xbf"  # the byte order mark, which is not part of the first line
_NEWLINE, _SPACE = b"\n "

ReadBytes = Callable[[int], bytes]
"""Returns that many bytes, or fewer at the end."""


def csv_blanks(delimiter: str) -> str:
    """The ``BLANKS`` of CSV. The delimiter is none: a line of empty cells is a record."""
    return BLANKS.replace(delimiter, "")


def line_blocks(read: ReadBytes, start: int, end: int) -> Iterator[bytes]:
    """The lines that begin in (start, end], each with its newline. ``read`` is at ``start``."""
    left, begun, inside = end - start, list[bytes](), start == 0
    first = inside
    while left > 0 and (data := read(min(left, BLOCK))):
        left -= len(data)
        if first:
            data, first = data.removeprefix(_MARK), False
        if not inside:
            _, newline, data = data.partition(b"\n")
            inside = bool(newline)
        if inside and left:
            cut = data.rfind(b"\n") + 1
            if cut:
                yield b"".join([*begun, data[:cut]])
                begun.clear()
            begun.append(data[cut:])
        elif inside:
            begun += [data, *_to_line_end(read)]
    if any(begun):
        yield b"".join(begun)


def _to_line_end(read: ReadBytes) -> Iterator[bytes]:
    while data := read(_REST):
        text, newline, _ = data.partition(b"\n")
        yield text + newline
        if newline:
            return


def is_blank(first: bytes, blanks: str) -> bool:
    """Whether the ``first`` line of a text does not count."""
    return not first.removeprefix(_MARK).rstrip(b"\n").strip(blanks.encode())


def count_lines(text: bytes, blanks: str) -> int:
    """The number of lines in ``text`` that count."""
    ends = _ends(text)
    return len(ends) - int(_blank_lines(text, ends, blanks).sum())


def lines_of(text: bytes, blanks: str) -> pa.BinaryArray:
    """The lines of ``text`` that count, without newlines. Raises pa.ArrowCapacityError."""
    if len(text) >= _MOST:
        raise pa.lib.ArrowCapacityError("a line above 2 GiB")
    ends = _ends(text)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text.replace(b"\n", b""))]
    lines = pa.Array.from_buffers(pa.binary(), len(ends), buffers)
    blank = _blank_lines(text, ends, blanks)
    return lines.filter(pa.array(~blank)) if blank.any() else lines


def _ends(text: bytes) -> npt.NDArray[np.int64]:
    """Where the lines end: at their newlines, or at the end of the text."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)
    return ends if text.endswith(b"\n") or not text else np.append(ends, len(text))


def _blank_lines(text: bytes, ends: npt.NDArray[np.int64], blanks: str) -> npt.NDArray[np.bool_]:
    """Which lines are empty or have only blanks."""
    white = blanks.encode()
    starts = np.empty_like(ends)
    starts[:1], starts[1:] = 0, ends[:-1] + 1
    blank: npt.NDArray[np.bool_] = starts == ends
    first = np.frombuffer(text, np.uint8)[np.where(blank, 0, starts)]
    for line in np.flatnonzero((first <= _SPACE) & ~blank).tolist():
        blank[line] = not text[starts[line] : ends[line]].strip(white)
    return blank
