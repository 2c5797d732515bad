"""CSV lines as JSON objects of texts, which is what the parser of records reads."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from functools import lru_cache

import pyarrow as pa

from headgate.sources.files.csv_lines import document_of, has_inner_return, names_of
from headgate.sources.files.declared import FilesSource
from headgate.sources.files.lines import csv_blanks, is_blank
from headgate.sources.files.texts import text_of
from headgate.storage.files import Storage
from headgate.storage.places import is_address, parent


def csv_header(landing: Storage, source: FilesSource, path: str) -> tuple[str, ...]:
    """The names of the cells of a CSV file: those in its first line that is not blank, or the
    declared ones if it has no header. Raises OSError, and pa.ArrowInvalid if lines end with CR
    alone: the whole file would be the header."""
    if source.csv_fields:
        return source.csv_fields
    blanks = csv_blanks(source.csv_delimiter)
    with text_of(landing, path) as text:
        lines = iter(io.BufferedReader(text).readline, b"")
        first = next((line for line in lines if not is_blank(line, blanks)), b"")
        is_all = all(is_blank(line, blanks) for line in lines)
    line = first.decode("utf-8-sig", "replace").rstrip("\n")
    if is_all and has_inner_return(line):
        raise pa.ArrowInvalid(
            "lines end with CR; convert the file to LF, or declare csv: {multiline: true}"
        )
    return names_of(line, source.csv_delimiter)


def as_document(source: FilesSource, where: str | None, value: bytes) -> bytes:
    """A record of a file as JSON, as bronze reads it. A CSV line is returned unchanged if its file
    is missing, or if it was unparsable in bronze, so that it stays so."""
    if source.format != "csv" or source.csv_multiline or where is None or _is_object(value):
        return value
    with suppress(OSError, EOFError, UnicodeDecodeError, pa.ArrowInvalid):
        document = document_of(_header(source, where), source.csv_delimiter)
        return document(value.decode()) or value
    return value


def _is_object(value: bytes) -> bool:
    """Whether a record is the document of an earlier replay, not a line of cells."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(value), dict)
    return False


@lru_cache(maxsize=64)
def _header(source: FilesSource, path: str) -> tuple[str, ...]:
    landing = Storage(parent(path)) if is_address(path) else Storage(source.path)
    return csv_header(landing, source, path.rpartition("/")[2] if is_address(path) else path)
