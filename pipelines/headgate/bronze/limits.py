"""Limits of a JSON document. A record that exceeds one is unparsable.

Spark's JSON parser rejects the whole line then, and ``validation`` checks the same limits.
"""

from __future__ import annotations

MAX_DEPTH = 500
"""Levels of objects and arrays; the record itself is the first."""

MAX_DIGITS = 5_000
"""Digits of one number. Converting digits takes time that grows with their square. The parser does
not count the digits of a fraction that no column needs."""

MAX_NAME = 50_000
"""Characters of a field's name. Fixed in the parser."""

PARSER_LIMITS = {
    "maxNestingDepth": str(MAX_DEPTH),
    "maxNumLen": str(MAX_DIGITS),
    "maxStringLen": str(2**31 - 1),
}
