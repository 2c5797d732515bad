"""Patterns inside string literals: regular expressions, and Spark's date and time patterns.

Java's matcher recurses once per repetition of a group, so a long hostile text would overflow the
stack: only single characters and classes may repeat without bound. Java's year takes a sign and up
to nine digits, so a hostile text would overflow Spark's microseconds: text that is read by a
pattern must first match :func:`reading_regex`.
"""

from __future__ import annotations

import re

from headgate.declaration.errors import Invalid

_MAX_PATTERN = 200
_PRINTED = {"y": 4, "u": 4, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "a": 1, "H": 2, "k": 2}
_PRINTED |= {"h": 2, "K": 2, "m": 2, "s": 2, "S": 9, "Q": 4, "q": 4, "X": 3, "x": 3, "z": 3, "Z": 3}
_OFFSET = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
# Year 0 is not in the calendar of most readers.
_YEAR = r"(?!0000)\d{4}"
# The text that each field may have when it is read.
_READ = {
    "yyyy": _YEAR, "uuuu": _YEAR, "yy": r"\d{2}",
    "M": r"\d{1,2}", "MM": r"\d{2}", "MMM": r"[A-Za-z]{3}", "MMMM": r"[A-Za-z]{3,9}",
    "d": r"\d{1,2}", "dd": r"\d{2}", "EEE": r"[A-Za-z]{3}", "a": r"[A-Za-z]{2}",
    "H": r"\d{1,2}", "HH": r"\d{2}", "h": r"\d{1,2}", "hh": r"\d{2}",
    "m": r"\d{1,2}", "mm": r"\d{2}", "s": r"\d{1,2}", "ss": r"\d{2}",
    **{"S" * n: rf"\d{{1,{n}}}" for n in range(1, 10)},
    "X": _OFFSET, "XX": _OFFSET, "XXX": _OFFSET, "x": _OFFSET, "xx": _OFFSET, "xxx": _OFFSET,
}  # fmt: skip
# The text that to_timestamp reads without a pattern. Spark alone reads 12:30 as a time of today.
ISO_REGEX = rf"^{_YEAR}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?(Z|[+-]\d\d:\d\d)?)?$"
_FIELD = re.compile(r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<other>.)", re.DOTALL)
_UNBOUNDED = re.compile(r"\)\??(?:[*+]|\{\d+,\}|\{(?:\d+,)?\d{3,}\})")
_LOOKING_AHEAD = re.compile(r"(?<!\\)\(\?[=!]")
_SYNTAX = re.compile(
    r"""\\[dDwWsSbBtnr\\.^$|?*+()\[\]{}/"'-]   # escapes that mean the same everywhere
    |\[\^?(?:\\[dDwWsStnr\\.^$|?*+()\[\]{}/-]|[^\\\[\]&]|&(?!&))+\]   # one class, not nested
    |\((?:\?:|(?!\?))|\)|\|
    |[*+?]\??|\{\d{1,3}(?:,\d{0,3})?\}\??
    |[^\\\[\](){}*+?|]""",
    re.VERBOSE,
)


def check_regex(text: str, looking_ahead: bool = False) -> None:
    """Raises Invalid unless ``text`` is a regular expression that Java runs on any input, and that
    means the same in Python. ``looking_ahead`` allows lookahead, for patterns that are not run in
    Spark."""
    if len(text) > _MAX_PATTERN:
        raise Invalid(f"a regular expression has at most {_MAX_PATTERN} characters")
    plain = _LOOKING_AHEAD.sub("(?:", text) if looking_ahead else text
    if "".join(found.group() for found in _SYNTAX.finditer(plain)) != plain:
        raise Invalid(f"{text!r} uses a part of regular expressions that is not supported")
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid(f"{text!r} is not a regular expression: {error}") from None
    without_classes = re.sub(r"\\.|\[\^?(?:\\.|[^\]])*\]", "x", text)
    if _UNBOUNDED.search(without_classes):
        raise Invalid(f"{text!r} repeats a group without bound, which long input could use to fail")


def group_count(regex: str) -> int:
    """How many groups a checked regular expression captures."""
    return re.compile(regex).groups


def check_print_pattern(text: str) -> None:
    """Raises Invalid unless Spark can print any time with this pattern."""
    for found in _fields(text):
        letters = found["field"]
        if letters and len(letters) > _PRINTED.get(letters[0], 0):
            raise Invalid(f"{letters!r} is not a part of a date pattern that is supported")


def check_read_pattern(text: str) -> None:
    """Raises Invalid unless text can be read by this pattern: each field has a known width, and
    occurs once."""
    seen: set[str] = set()
    for found in _fields(text):
        letters = found["field"]
        if not letters:
            continue
        if letters not in _READ:
            raise Invalid(f"{letters!r} is not a part of a date pattern that can be read")
        if letters[0] in seen:
            raise Invalid(f"{letters[0]!r} stands twice in the pattern {text!r}")
        seen.add(letters[0])
    if not seen & {"y", "u"} or "d" not in seen or "M" not in seen:
        raise Invalid(f"the pattern {text!r} needs a year, a month and a day")


def has_offset(pattern: str) -> bool:
    """Whether a pattern reads an offset from UTC."""
    return any(letters[:1] in ("X", "x") for letters, _ in fields_of(pattern))


def reading_regex(pattern: str) -> str:
    """A regular expression (Java's and Python's alike) that text must match before it is read by
    ``pattern``: nothing that matches can overflow."""
    parts = (_READ[letters] if letters else _escape(each) for letters, each in fields_of(pattern))
    return f"^{''.join(parts)}$"


def _escape(literal: str) -> str:
    # A quote would end the SQL text that holds the regular expression.
    return re.sub(r"[\\.^$|?*+()\[\]{}]", r"\\\g<0>", literal).replace("'", r"\x27")


def fields_of(pattern: str) -> list[tuple[str, str]]:
    """The parts of a pattern: the letters of a field, or else a literal."""
    return [(found["field"] or "", _literal(found)) for found in _fields(pattern)]


def _literal(found: re.Match[str]) -> str:
    quoted: str | None = found["quoted"]
    if quoted is None:
        return found["other"] or ""
    return quoted.replace("''", "'") or "'"


def _fields(pattern: str) -> list[re.Match[str]]:
    if not pattern or len(pattern) > _MAX_PATTERN:
        raise Invalid(f"a date pattern has 1 to {_MAX_PATTERN} characters")
    found = list(_FIELD.finditer(pattern))
    if any(match["other"] and match["other"] in "#{}[]'" for match in found):
        raise Invalid(f"the date pattern {pattern!r} holds one of # {{ }} [ ] or an open quote")
    return found
