"""Why a record is no JSON object, in words: what was seen, and what to do."""

from __future__ import annotations

import json
import re

from headgate.flow.bronze.decoding.limits import MAX_DEPTH
from headgate.flow.sources.excerpts import beginning, not_utf8

_ONE = "a record is one whole document, in a file on one line"
_MARK = "\ufeff"
_WORD = re.compile(r"[A-Za-z]+|[+.]\d")
_UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]")


def why_unparsable(given: bytes, error: Exception) -> str:
    """The detail of a record that is not JSON. ``error`` is that of ``read_document``."""
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
