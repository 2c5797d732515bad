"""Guards for calls that could make Spark fail, or whose result would depend on the day.

- Java reads a year such as ``+999999999``, with which Spark overflows and stops. Spark reads
  ``12:30`` as a time of today. So text is matched first: ``to_date(x, p)`` runs as
  ``to_date(if(x rlike r, x, null), p)``.
- A hostile line of ten million commas would be split into as many texts: ``split(x, r)`` runs as
  ``split(x, r, 1000)``.
- A time outside the years 1 to 9999, which most readers of a table cannot read, becomes null.
"""

from __future__ import annotations

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.tokens import MAX_LENGTH, commas, string_value, tokenize
from headgate.declaration.patterns import ISO_REGEX, reading_regex
from headgate.declaration.types import DATE, TIMESTAMP, DataType

MOST_ELEMENTS = 1000
_FIRST: dict[DataType, str] = {TIMESTAMP: "0001-01-01 00:00:00", DATE: "0001-01-01"}
_LAST: dict[DataType, str] = {TIMESTAMP: "9999-12-31 23:59:59.999999", DATE: "9999-12-31"}


def harden(text: str) -> str:
    """``text`` with a guard in each call that needs one. Raises Invalid as ``check_length``."""
    tokens = tokenize(text)
    # From the last call to the first, so that the tokens before a call do not move.
    for index in range(len(tokens) - 1, 0, -1):
        if tokens[index].text != "(":
            continue
        name = tokens[index - 1].lower
        if name in ("to_date", "to_timestamp"):
            text = _read_guarded(name, text, index)
        elif name == "split":
            text = _split_guarded(text, index)
        check_length(text)
    return text


def check_length(hardened: str) -> None:
    """Raises Invalid if guards have made an expression longer than one may be."""
    if len(hardened) > MAX_LENGTH:
        raise Invalid(
            f"is longer than {MAX_LENGTH} characters with the guards that Headgate adds for Spark; "
            "compute a part of it in a column of its own"
        )


def in_calendar(text: str, type_: DataType) -> str:
    """``text``, a date or timestamp, or null if it is outside the years 1 to 9999."""
    first, last = (f"{type_} '{limit[type_]}'" for limit in (_FIRST, _LAST))
    return f"if(({text}) between {first} and {last}, ({text}), null)"


def _read_guarded(name: str, text: str, opening: int) -> str:
    tokens = tokenize(text)
    between, end = commas(tokens, opening)
    if not between and name == "to_date":
        return text
    stop = tokens[between[0] if between else end].start
    value = text[tokens[opening].end : stop].strip()
    regex = reading_regex(string_value(tokens[between[0] + 1])) if between else ISO_REGEX
    guard = f"if(({value}) rlike r'{regex}', ({value}), null)"
    return text[: tokens[opening].end] + guard + text[stop:]


def _split_guarded(text: str, opening: int) -> str:
    tokens = tokenize(text)
    between, end = commas(tokens, opening)
    if len(between) != 1:
        return text
    return f"{text[: tokens[end].start]}, {MOST_ELEMENTS}{text[tokens[end].start :]}"
