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
from headgate.declaration.expressions.patterns import ISO_REGEX, check_read_pattern, reading_regex
from headgate.declaration.expressions.tokens import (
    MAX_LENGTH,
    Token,
    commas,
    string_value,
    tokenize,
)
from headgate.declaration.types import (
    DATE,
    TIMESTAMP,
    Array,
    DataType,
    Map,
    Struct,
    is_time,
    parts,
)

MOST_ELEMENTS = 1000
_READING = {"to_date", "to_timestamp", "try_to_date", "try_to_timestamp"}
_READING |= {"to_timestamp_ltz", "to_timestamp_ntz"}
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
        if name in _READING:
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


def in_calendar(text: str, type_: DataType, depth: int = 0) -> str:
    """``text`` with null for each date or timestamp, also within its values, that is outside the
    years 1 to 9999. No column has a name like that of a variable here."""
    one = f"_one{depth}"
    if is_time(type_):
        first, last = (f"{type_} '{limit[type_]}'" for limit in (_FIRST, _LAST))
        return f"if(({text}) between {first} and {last}, ({text}), null)"
    if not any(map(is_time, parts(type_))):
        return text
    if isinstance(type_, Array):
        return f"transform({text}, {one} -> {in_calendar(one, type_.element, depth + 1)})"
    if isinstance(type_, Map):
        value = in_calendar(one, type_.value, depth + 1)
        return f"transform_values({text}, (_key{depth}, {one}) -> {value})"
    assert isinstance(type_, Struct)
    fields = ", ".join(
        f"'{name}', {in_calendar(f'{one}.`{name}`', field, depth + 1)}"
        for name, field in type_.fields
    )
    # The array binds the struct to a variable, so that its text occurs once. After the word array,
    # Spark does not read >> as an operator.
    whole = f"if({one} is null, null, named_struct({fields}))"
    return f"transform(array_repeat({text}, 1), {one} -> {whole})[0]"


def _read_guarded(name: str, text: str, opening: int) -> str:
    tokens = tokenize(text)
    between, end = commas(tokens, opening)
    if not between and name.endswith("to_date"):
        return text
    stop = tokens[between[0] if between else end].start
    value = text[tokens[opening].end : stop].strip()
    regex = _regex_of(name, tokens[between[0] + 1]) if between else ISO_REGEX
    guard = f"if(({value}) rlike r'{regex}', ({value}), null)"
    return text[: tokens[opening].end] + guard + text[stop:]


def _regex_of(name: str, pattern: Token) -> str:
    if pattern.kind not in ("string", "raw"):
        raise Invalid(f"{name}(): the pattern must be a literal text")
    check_read_pattern(string_value(pattern))
    return reading_regex(string_value(pattern))


def _split_guarded(text: str, opening: int) -> str:
    tokens = tokenize(text)
    between, end = commas(tokens, opening)
    if len(between) != 1:
        return text
    return f"{text[: tokens[end].start]}, {MOST_ELEMENTS}{text[tokens[end].start :]}"
