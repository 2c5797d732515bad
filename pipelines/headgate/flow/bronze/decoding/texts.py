"""Texts that stand for numbers and booleans: the cells of CSV, and numbers in quotes."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from headgate.declaration import types
from headgate.flow.bronze.decoding.documents import Fraction, Integer
from headgate.flow.bronze.decoding.limits import MAX_DIGITS

BLANKS = " \t\n\r\f\v"
"""These do not count around a number, a boolean, a date or a time in a text."""

BITS = dict(zip(types.INTEGRALS, (8, 16, 32, 64), strict=True))
WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}

_NUMBER = re.compile(r"(-?)0*(\d+)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = {"true": True, "t": True, "false": False, "f": False}
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)


def number(text: str) -> Integer | Fraction | None:
    """The JSON number that a text stands for: it may have zeros at its beginning, and blanks around
    it. None if it is no number."""
    written = text.strip(BLANKS)
    if len(written) > MAX_DIGITS or not (found := _NUMBER.fullmatch(written)):
        return None
    is_whole = found[3] is None and found[4] is None
    kind = Integer if is_whole else Fraction
    return kind("".join(part or "" for part in found.groups()))


def cell_value(cell: object, type_: types.DataType) -> object:
    """The JSON value that a cell of CSV stands for in a column of a scalar type. A cell that was
    corrected may be any JSON value."""
    if type(cell) is not str or type_ == types.STRING or types.is_time(type_):
        return cell
    if type_ == types.BOOLEAN:
        return _BOOLEANS.get(cell.strip(BLANKS).lower(), cell)
    return cell if (found := number(cell)) is None else found


def plain_decimal(type_: types.Decimal) -> str:
    """A regular expression for decimals that Arrow converts exactly."""
    whole, scale = type_.precision - type_.scale, type_.scale
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    return f"-?[0-9]{{1,{whole}}}{fraction}" if whole else f"-?0{fraction}"


def rounded(number: Decimal, type_: types.Decimal) -> Decimal | None:
    """``number`` rounded half up, without the sign of a zero; None if it is out of range."""
    most = type_.precision - type_.scale
    if number and number.adjusted() > most:
        return None
    found = _WIDE.quantize(number, Decimal(1).scaleb(-type_.scale))
    return (found or abs(found)) if not found or found.adjusted() < most else None
