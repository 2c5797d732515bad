"""Lines of CSV as JSON objects of texts, which is what the parser of records reads."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache

import pyarrow as pa

from headgate.flow.sources.details import not_utf8
from headgate.flow.sources.files.csv_cells import Dialect, MalformedCell
from headgate.flow.sources.files.csv_header import Header, UnfitRow, declared, dialect_of, header_of
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.lines import csv_blanks, is_blank
from headgate.flow.sources.files.texts import text_of
from headgate.lake.storage.files import Storage
from headgate.lake.storage.places import is_address, parent

_MULTILINE = "cells with line breaks need csv: {multiline: true}"


def documents(lines: pa.Array, header: Header, dialect: Dialect) -> tuple[pa.Array, pa.Array]:
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
        return declared(source)
    blanks = csv_blanks(source.csv_delimiter)
    with text_of(landing, path) as text:
        lines = iter(text.opened.readline, b"")
        first = next((line for line in lines if not is_blank(line, blanks)), b"")
    return header_of(first.rstrip(b"\n"), source) if first else Header((), 0)


def as_document(source: FilesSource, where: str | None, value: bytes) -> bytes:
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
