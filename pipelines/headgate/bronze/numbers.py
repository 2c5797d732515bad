"""Finds decimals, by their spelling, that the JSON parser would accept wrongly or parse slowly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

# These begin with four characters or more, so that Java need not test every position.
_ODD = r'"%s"\s*:\s*(?:"(?!-?[0-9]+(?:\.[0-9]+)?")|-?[0-9.]+[eE][-+]?[0-9]{5})'
_ESCAPED_NAME = r'\\u00[3-7][0-9A-Fa-f][A-Za-z0-9_]{0,62}"\s*:'
# A quote after a letter or digit, followed by a colon, ends a name. It is never inside a text.
_HUGE_NUMBER = r'([A-Za-z0-9_]"\s*:\s*-?[0-9.]+[eE][-+]?0*)[1-9][0-9]{4,}'
_TEXT_WITH_EXPONENT = r'("(?:%s)"\s*:\s*")(?=[^"]*(?:[eE]|\\u00[46]5))'


def is_odd(text: Column, decimals: Sequence[str]) -> Column:
    """Whether JSON ``text`` may not spell one of the columns ``decimals`` as a plain number: as
    text that is not a number (the parser accepts ``"1e2"`` and ``"1,5"``), with an exponent of
    five digits, or under an escaped name."""
    odd = [text.rlike(_ODD % name) for name in decimals]
    return reduce(Column.__or__, [*odd, text.rlike(_ESCAPED_NAME)])


def tamed(text: Column, decimals: Sequence[str]) -> Column:
    """``text`` without exponents beyond 9999: the parser would write out every zero of a decimal
    1e99999999, which takes minutes.

    The result is otherwise the same. No number has more than ``MAX_DIGITS`` digits, so a number
    with such an exponent is out of range or zero with either exponent. A decimal in text may not
    have an exponent: it is made invalid with a question mark.
    """
    names = "|".join("".join(_perhaps_escaped(letter) for letter in name) for name in decimals)
    shorter = F.regexp_replace(text, _HUGE_NUMBER, "$19999")
    return F.regexp_replace(shorter, _TEXT_WITH_EXPONENT % names, "$1?")


def _perhaps_escaped(letter: str) -> str:
    return rf"(?:{letter}|\\u00(?i:{ord(letter):02x}))"
