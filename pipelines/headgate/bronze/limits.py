"""How much of a document is read: beyond these, a record is unparsable.

The JSON parser gives up on the whole line where one is passed, and ``judging`` looks for the same.
"""

from __future__ import annotations

MAX_DEPTH = 500
"""Levels of objects and arrays; the record itself is the first."""

MAX_DIGITS = 5_000
"""Digits of one number: turning digits into a number takes time that grows with their square.
The parser passes over the digits of a fraction that no column asks for."""

MAX_NAME = 50_000
"""Characters of a field's name. Fixed in the parser."""

PARSER_LIMITS = {
    "maxNestingDepth": str(MAX_DEPTH),
    "maxNumLen": str(MAX_DIGITS),
    "maxStringLen": str(2**31 - 1),
}
