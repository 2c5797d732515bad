"""Strict JSON documents as defined by RFC 8259, within limits, and why a record is none.

A record that exceeds a limit is unparsable.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.sources.excerpts import beginning, not_utf8

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


class Integer(str):
    """A JSON integer, as written."""

    __slots__ = ()


class Fraction(str):
    """A JSON number with a fraction or an exponent, as written."""

    __slots__ = ()


def read_json(text: bytes) -> object:
    """The only document in ``text``. If several fields have the same name, the last one counts.
    Raises ValueError or RecursionError."""
    decoded = text.decode("utf-8")
    document = json.loads(
        decoded,
        parse_int=lambda number: Integer(_limited(number)),
        parse_float=lambda number: Fraction(_limited(number)),
        parse_constant=_refuse,
        object_pairs_hook=_object,
    )
    if _depth(decoded) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return document


def document_text(value: object) -> str:
    """``value`` as JSON, with numbers as they were written. Loops use one stack frame per level,
    so that ``MAX_DEPTH`` fits Python's stack."""
    parts = []
    if isinstance(value, dict):
        for name, item in value.items():
            parts.append(f"{json.dumps(name, ensure_ascii=False)}: {document_text(item)}")
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        for item in value:
            parts.append(document_text(item))
        return "[" + ", ".join(parts) + "]"
    if isinstance(value, Integer | Fraction):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate."""
    return text.isascii() or in_utf8(text) == text


def in_utf8(text: str) -> str:
    """``text`` with a question mark for each lone surrogate, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def _depth(document: str) -> int:
    """The nesting depth of a valid document; 0 if it cannot exceed the limit."""
    if document.count("{") + document.count("[") <= MAX_DEPTH:
        return 0
    brackets = _BRACKET.findall(_TEXT.sub("", document))
    return max(accumulate(1 if bracket in "{[" else -1 for bracket in brackets), default=0)


def _limited(number: str) -> str:
    if len(number) > MAX_DIGITS and sum(map(str.isdigit, number)) > MAX_DIGITS:
        raise ValueError(f"a number with more than {MAX_DIGITS} digits")
    return number


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if max(map(len, found), default=0) > MAX_NAME:
        raise ValueError(f"a name with more than {MAX_NAME} characters")
    return found


_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[{\]}]")


_ONE = "a record is one whole document, in a file on one line"
_MARK = "\ufeff"
_WORD = re.compile(r"[A-Za-z]+|[+.]\d")
_UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]")


def why_unparsable(given: bytes, error: Exception) -> str:
    """The detail of a record that is not JSON. ``error`` is that of ``read_json``."""
    if _UTF16.match(given):
        return "it is encoded in UTF-16; write UTF-8"
    if given.startswith(b"\0"):
        return "it begins with the byte 0x00, as in the formats of a schema registry; write JSON"
    if isinstance(error, UnicodeDecodeError):
        return not_utf8(error)
    if isinstance(error, RecursionError):
        return f"nested deeper than {MAX_DEPTH} levels"
    return _of_json(error) if isinstance(error, json.JSONDecodeError) else str(error)


def why_no_object(document: object) -> str:
    """The detail of a JSON document that is not an object."""
    if isinstance(document, list):
        return f"a list, not an object; {_ONE}"
    kind = {str: "a text", bool: "a boolean", type(None): "null"}.get(type(document), "a number")
    return f"{kind}, not an object"


def _of_json(error: json.JSONDecodeError) -> str:
    text, rest = error.doc, error.doc[error.pos :].lstrip()
    shown = beginning(rest)
    if text.startswith(_MARK):
        return "a byte order mark is before the document; remove it"
    if not text.strip():
        return "it is empty"
    if not rest or error.msg.startswith("Unterminated string"):
        return f"it ends within the document, {beginning(text)}; {_ONE}"
    if error.msg == "Extra data":
        return _of_more(text, rest)
    if text.lstrip().startswith(("]", "}")):
        return f"a part of a document, {shown}; {_ONE}"
    where = f"at character {error.pos + 1}"
    if rest.startswith("'"):
        return f"names and texts are not in double quotes {where}, {shown}"
    if error.msg.startswith("Expecting property name"):
        what = "a comma before the end" if rest.startswith("}") else "a name without double quotes"
        return f"{what} {where}, {shown}"
    if error.msg == "Expecting value" and (found := _WORD.match(rest)):
        return f"no JSON {where}, {beginning(found[0])}"
    return f"{error.msg.removesuffix(' at')} {where}, {beginning(text[error.pos :])}"


def _of_more(text: str, rest: str) -> str:
    """The text is a document, and then comes more."""
    shown = beginning(rest)
    if rest.startswith(("{", "[")):
        return f"another document follows, {shown}; {_ONE}"
    if rest.startswith(",") and text.lstrip().startswith(("{", "[")):
        return f"a comma follows the document; {_ONE}, without commas between"
    if rest.startswith((":", ",", "]", "}")):
        return f"a part of a document, {beginning(text)}; {_ONE}"
    return f"text follows the document, {shown}"
