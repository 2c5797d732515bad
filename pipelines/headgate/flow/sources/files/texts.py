"""Opens the texts in landing files, which may be compressed."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.flow.sources.files.contents import FIRST, compression_of, require_unpacked
from headgate.lake.storage.files import Storage

_BUFFER = 1 << 20  # bytes that are read at once from the beginning of a file


class Text(NamedTuple):
    """``opened`` is a file of bytes."""

    opened: Any
    is_compressed: bool


@contextmanager
def text_of(landing: Storage, path: str, start: int = 0) -> Iterator[Text]:
    """A file's text from byte ``start`` on, which is 0 for a compressed file: it has no text at any
    other place. Raises OSError, and WrongContentError if the file is known to contain no text."""
    with landing.open(path) as raw:
        file = io.BufferedReader(raw, FIRST if start else _BUFFER)
        first = file.peek(FIRST)[:FIRST]
        if (packed := compression_of(first)) is None:
            file.seek(start)
            yield Text(file, is_compressed=False)
        elif start:
            yield Text(io.BytesIO(), is_compressed=True)
        else:
            with _unpacked(file, packed) as opened:
                text = io.BufferedReader(opened, _BUFFER)
                require_unpacked(text.peek(FIRST)[:FIRST])
                yield Text(text, is_compressed=True)


def _unpacked(file: io.BufferedReader, packed: str) -> Any:
    if packed == "gzip":
        return gzip.open(file)
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), packed)
