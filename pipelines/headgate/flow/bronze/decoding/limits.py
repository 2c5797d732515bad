"""Limits of a JSON document. A record that exceeds one is unparsable."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

MAX_DEPTH = 500
"""Levels of objects and arrays; the record itself is the first."""

MAX_DIGITS = 5_000
"""Digits of one number. Converting digits takes time that grows with their square."""

MAX_NAME = 50_000
"""Characters of a field's name."""

_MANY_DIGITS = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_DIGITS + 1))


def doubtful(texts: pa.BinaryArray) -> list[int]:
    """The indexes of texts that the decoder may accept although they are unparsable. In fields that
    it skips, it does not detect invalid UTF-8, depth and long numbers."""
    long = [i for i in _long(texts, 2 * MAX_DEPTH) if _exceeds(texts[i].as_py())]
    return _not_utf8(texts, 0, len(texts)) + long


def _not_utf8(texts: pa.BinaryArray, first: int, end: int) -> list[int]:
    """The indexes of texts in [first, end) that are not UTF-8. There are nearly always none, so
    each half is checked as a whole."""
    if _is_utf8(texts.slice(first, end - first)):
        return []
    if end - first == 1:
        return [first]
    middle = (first + end) // 2
    return _not_utf8(texts, first, middle) + _not_utf8(texts, middle, end)


def _exceeds(text: bytes) -> bool:
    """Whether a text may exceed a limit."""
    return (
        text.count(b"[") + text.count(b"{") > MAX_DEPTH
        or len(text) > MAX_NAME
        or (len(text) > MAX_DIGITS and _MANY_DIGITS.search(text) is not None)
    )


def _is_utf8(texts: pa.BinaryArray) -> bool:
    try:
        texts.cast(pa.large_string() if pa.types.is_large_binary(texts.type) else pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _long(texts: pa.BinaryArray, length: int) -> list[int]:
    long = pc.fill_null(pc.greater(pc.binary_length(texts), length), False)
    indexes: list[int] = pc.indices_nonzero(long).to_pylist()
    return indexes
