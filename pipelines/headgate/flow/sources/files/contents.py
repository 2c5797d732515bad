"""What a file contains, by its first bytes; its name says nothing. Opens compressed texts, too."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.flow.sources.excerpts import beginning
from headgate.lake.storage.files import Storage

FIRST = 512
"""The number of first bytes that tell what a file contains."""

_COMPRESSED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": "bz2",
    rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18": "zstd",
}
_BINARY = rb"(?=.*[\0-\x08\x0b\x0c\x0e-\x1f])"  # a header of CSV may begin with the same letters
_OTHERS = {
    rb"PK(?:\x03\x04|\x05\x06|\x07\x08)": "a zip archive, as .xlsx files are",
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Office document, as .xls files are",
    rb"\xfd7zXZ\0": "compressed with xz",
    rb"7z\xbc\xaf\x27\x1c": "a 7z archive",
    rb"\x04\x22\x4d\x18": "compressed with lz4",
    rb"\xff\x06\0\0sNaPpY": "compressed with snappy",
    rb"\x1f\x9d": "compressed with compress",
    rb".{257}ustar(?:\0|  \0)": "a tar archive",
    rb"PAR[1E]" + _BINARY: "a Parquet file",
    rb"ORC" + _BINARY: "an ORC file",
    rb"Obj\x01": "an Avro file",
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "UTF-32",
    rb"\xff\xfe|\xfe\xff": "UTF-16",
    rb"[\x20-\x7e]\0[\x20-\x7e]\0|\0[\x20-\x7e]\0[\x20-\x7e]": "UTF-16",
}
_ASCII = re.compile(rb"[\t\r\n\x20-\x7e]*")
_SHOWN = 32  # bytes


class WrongContentError(pa.ArrowInvalid):  # type: ignore[misc]
    """A file does not contain what its source declares. The message is for people."""


def compression_of(first: bytes) -> str | None:
    """How a text with these ``FIRST`` bytes is compressed; None if it is not. Raises
    WrongContentError if there are no lines of UTF-8."""
    if _ASCII.fullmatch(first):  # as nearly all are
        return None
    if (packed := _known(_COMPRESSED, first)) or (known := _known(_OTHERS, first)) is None:
        return packed
    if known in ("UTF-16", "UTF-32"):
        raise WrongContentError(f"it is encoded in {known}; convert it to UTF-8")
    remedy = "unpack it, or compress it with gzip, bzip2 or zstd"
    if known.endswith("file"):
        remedy = "give it a folder and a source of its own"
    raise WrongContentError(f"it is {known}, not lines of text; {remedy}")


def require_unpacked(first: bytes) -> None:
    """Raises WrongContentError if an unpacked text with these ``FIRST`` bytes has no lines of
    UTF-8."""
    if packed := compression_of(first):
        raise WrongContentError(f"it is compressed twice, with {packed} within; unpack it once")


def not_parquet(first: bytes) -> WrongContentError | None:
    """Why a file with these ``FIRST`` bytes is not Parquet; None if it begins as Parquet does."""
    if first.startswith(b"PAR1") or not first:
        return None
    packed = _known(_COMPRESSED, first)
    known = f"compressed with {packed}" if packed else _known(_OTHERS, first)
    shown = beginning(first[:_SHOWN].decode("utf-8", "replace"))
    if known is None:
        return WrongContentError(f"it is not Parquet, and begins with {shown}")
    return WrongContentError(f"it is {known}, not Parquet; give it a source of its own")


def _known(begins: Mapping[bytes, str], first: bytes) -> str | None:
    found = (name for begin, name in begins.items() if re.match(begin, first, re.DOTALL))
    return next(found, None)


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
