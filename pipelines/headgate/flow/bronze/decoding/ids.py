"""The texts of ids. A value becomes text without loss: two ids are equal only if their values are.

What a column keeps of a value may be less: six digits of a second, the scale of a decimal, or the
double of a number that a column holds as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

from headgate.declaration import types
from headgate.declaration.model import TimeForm
from headgate.flow.bronze.decoding.documents import MAX_DIGITS, Fraction, is_unicode
from headgate.flow.bronze.decoding.times import BLANKS, time_text
from headgate.flow.bronze.decoding.values import BITS, Reader, instant_reader, text

_EXACT = Context(prec=MAX_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)

IdText = Callable[[object], str | None]
"""The text of a value that is not null; None if the value is not valid. May raise ValueError and
ArithmeticError instead."""


def id_of(texts: list[str]) -> str:
    """The event id from the texts of its columns. Several texts become a JSON array."""
    if len(texts) == 1:
        return texts[0]
    return "[" + ",".join(_quoted(each) for each in texts) + "]"


def exact_text(type_: types.DataType, times: TimeForm, read: Reader) -> IdText:
    """The text of a value of a declared type. ``read`` is the reader of the type."""
    if type_ == types.TIMESTAMP:
        # Not the text as it is given: an instant can be written in many ways.
        time_of = instant_reader(times)
        return lambda value: None if (time := time_of(value)) is None else time_text(time)
    if type_ == types.STRING:
        return _of_string
    if types.is_decimal(type_):
        return lambda value: _of_decimal(value, read(value))
    if type_ == types.DATE:
        return lambda value: None if read(value) is None else text(value).strip(BLANKS)
    if type_ in BITS:
        return lambda value: _of_integer(value, read(value))
    return lambda value: id_text(read(value))


def id_text(value: object) -> str:
    """The text of a scalar as ``values.Reader`` gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _of_string(value: object) -> str:
    """A number keeps the text of its column if this is the same number, and has all its digits
    otherwise. Half of a surrogate pair is no id: it would become a question mark, so that different
    ids would be equal."""
    if isinstance(value, Fraction):
        of_double = text(value)
        return of_double if Decimal(of_double) == (exact := Decimal(value)) else _shortest(exact)
    if isinstance(value, str) and not is_unicode(value):
        raise ValueError("not Unicode")
    return text(value)


def _of_integer(given: object, read: object) -> str:
    """A number that is only nearly whole is no id: others would be equal to it."""
    if Decimal(str(given).strip()) != read:
        raise ValueError("not whole")
    return str(read)


def _of_decimal(given: object, read: object) -> str:
    """A decimal that the column keeps has as many digits as the column."""
    assert isinstance(read, Decimal)
    exact = Decimal(str(given).strip())
    return f"{read:f}" if read == exact else _shortest(exact)


def _shortest(number: Decimal) -> str:
    """All digits of a number, with an exponent if it is long: equal numbers have one text."""
    return str(_EXACT.normalize(number))


def _quoted(text: str) -> str:
    # Escapes of control characters have capital hexadecimal digits, as Spark writes them.
    return _ESCAPE.sub(_capital, json.dumps(text, ensure_ascii=False))


_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def _capital(escape: re.Match[str]) -> str:
    found = escape.group()
    return f"\\u{found[2:].upper()}" if len(found) > 2 else found
