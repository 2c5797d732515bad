"""Strict JSON documents as defined by RFC 8259, within the limits of ``limits``."""

from __future__ import annotations

import json
import re
from itertools import accumulate

from headgate.flow.bronze.decoding.limits import MAX_DEPTH, MAX_DIGITS, MAX_NAME


class Integer(str):
    """A JSON integer, as written."""

    __slots__ = ()


class Fraction(str):
    """A JSON number with a fraction or an exponent, as written."""

    __slots__ = ()


def read_document(text: bytes) -> object:
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


def json_text(value: object) -> str:
    """``value`` as JSON, with numbers as they were written. Loops use one stack frame per level,
    so that ``MAX_DEPTH`` fits Python's stack."""
    parts = []
    if isinstance(value, dict):
        for name, item in value.items():
            parts.append(f"{json.dumps(name, ensure_ascii=False)}: {json_text(item)}")
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        for item in value:
            parts.append(json_text(item))
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
