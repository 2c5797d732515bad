"""CSV lines as JSON objects of texts, which is what the parser of records reads."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import suppress
from functools import lru_cache

from headgate.sources.files.declared import FilesSource
from headgate.storage.files import Storage


def csv_header(landing: Storage, source: FilesSource, path: str) -> tuple[str, ...]:
    """The column names in a CSV file's first line. Raises OSError."""
    with landing.open(path) as raw:
        stream = gzip.open(raw) if path.endswith(".gz") else raw
        first = io.BufferedReader(stream).readline()
    rows = csv.reader([first.decode("utf-8", "replace")], delimiter=source.csv_delimiter)
    return tuple(name.strip().lstrip("\ufeff") for name in next(rows, []))


def as_document(source: FilesSource, where: str | None, value: bytes) -> bytes:
    """A record of a file as JSON. A CSV line whose file is gone, or that does not fit its header,
    stays as it is. An empty cell is no field."""
    if source.format != "csv" or source.csv_multiline or where is None or _is_object(value):
        return value
    with suppress(OSError, EOFError, UnicodeDecodeError, csv.Error):
        header = _header(source, where)
        (cells,) = csv.reader([value.decode().rstrip("\r")], delimiter=source.csv_delimiter)
        if len(cells) <= len(header):
            fields = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
            return json.dumps(fields, ensure_ascii=False).encode()
    return value


def _is_object(value: bytes) -> bool:
    """Whether a record is the document of an earlier replay, and no line of cells."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(value), dict)
    return False


@lru_cache(maxsize=64)
def _header(source: FilesSource, path: str) -> tuple[str, ...]:
    return csv_header(Storage(source.path), source, path)
