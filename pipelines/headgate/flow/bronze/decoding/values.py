"""Values of a JSON document, and texts of cells, as declared types.

These rules decide; ``columns`` has shortcuts for values in a plain form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from math import inf, nan

import numpy as np
import pyarrow as pa

from headgate.declaration import types
from headgate.declaration.model import TimeForm
from headgate.flow.bronze.decoding.documents import MAX_DIGITS, Fraction, Integer, in_utf8
from headgate.flow.bronze.decoding.event_times import ISO, is_epoch, text_reader
from headgate.flow.bronze.decoding.times import BLANKS, Instant
from headgate.lake.tables.record_shape import double_text

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


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOST_WHOLE = (1 << 53) - 1
"""The largest integer that may be written with a fraction or an exponent, such as 3.0: beyond it,
several integers have one double."""
_DAY_ZERO = date(1970, 1, 1).toordinal()

Reader = Callable[[object], object]
"""Converts a JSON value to one that pyarrow accepts: times are microseconds and dates days since
1970 UTC, structs are dicts, and maps lists of pairs. Null has every type. Raises Misfit."""


class Misfit(ValueError):
    """A value does not have its declared type. ``path`` leads to it from the column, such as
    ``[2].price``."""

    def __init__(self, value: object, type_: types.DataType, path: str = "") -> None:
        super().__init__(path)
        self.value, self.type, self.path = value, type_, path


@lru_cache(maxsize=1024)
def reader(type_: types.DataType, times: TimeForm = ISO, *, named: bool = False) -> Reader:
    """The reader of a declared type, whose timestamps have the form ``times``. With ``named``, the
    texts NaN, Infinity, Inf, -Infinity and -Inf are doubles and floats, too, in any case."""
    read = _reader(type_, times, named=named)

    def of(value: object) -> object:
        if value is None:
            return None
        try:
            return read(value)
        except Misfit:
            raise
        except (ValueError, ArithmeticError):
            raise Misfit(value, type_) from None

    return of


def _reader(type_: types.DataType, times: TimeForm, *, named: bool) -> Reader:
    if type_ in BITS:
        return lambda value: _integer(value, BITS[type_])
    if types.is_decimal(type_):
        return lambda value: _decimal(value, type_)
    if isinstance(type_, types.Array):
        return _array(reader(type_.element, times, named=named))
    if isinstance(type_, types.Map):
        return _map(reader(type_.value, times, named=named))
    if isinstance(type_, types.Struct):
        return _struct({name: reader(field, times, named=named) for name, field in type_.fields})
    if type_ == types.TIMESTAMP:
        return _timestamp(instant_reader(times))
    read = _SCALARS[type_]
    return _or_named(read) if named and types.is_floating(type_) else read


def text(value: object) -> str:
    """A scalar as text: an integer as it is written, and another number as the text of its double.
    Raises ValueError."""
    if isinstance(value, Integer):
        return "0" if value == "-0" else str(value)
    if isinstance(value, Fraction):
        return double_text(_double(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return in_utf8(value)
    raise ValueError("not a scalar")


def instant_reader(times: TimeForm) -> Callable[[object], Instant | None]:
    """Reads a scalar as a time; the result is None if it has another form. May raise
    ValueError."""
    of_text = text_reader(times)
    if is_epoch(times):
        # A number as it is written, and not as the text of its double.
        return lambda value: of_text(str(value)) if isinstance(value, str) else None
    return lambda value: of_text(text(value))


_NAMED = {"nan": nan, "infinity": inf, "inf": inf, "-infinity": -inf, "-inf": -inf}


def _or_named(read: Reader) -> Reader:
    def of(value: object) -> object:
        name = value.strip(BLANKS).lower() if type(value) is str else None
        return _NAMED[name] if name in _NAMED else read(value)

    return of


def _array(read: Reader) -> Reader:
    def of(value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("not an array")
        return [_at(f"[{place}]", read, item) for place, item in enumerate(value)]

    return of


def _map(read: Reader) -> Reader:
    def of(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError("not an object")
        # Keys that differ only in halves of surrogate pairs become one: the last value counts.
        found = {text(key): _at(f"['{key}']", read, item) for key, item in value.items()}
        return list(found.items())

    return of


def _struct(fields: Mapping[str, Reader]) -> Reader:
    """Fields that are not declared are left out."""

    def of(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return {name: _at(f".{name}", read, value.get(name)) for name, read in fields.items()}

    return of


def _at(step: str, read: Reader, value: object) -> object:
    try:
        return read(value)
    except Misfit as misfit:
        raise Misfit(misfit.value, misfit.type, f"{step}{misfit.path}") from None


def _integer(value: object, bits: int) -> int:
    half = 1 << (bits - 1)
    if isinstance(value, Fraction):
        number = float(value)
        whole = int(number) if number.is_integer() and abs(number) <= MOST_WHOLE else half
    else:
        whole = int(value) if isinstance(value, Integer) and len(value) <= 24 else half
    if not -half <= whole < half:
        raise ValueError("not an integer in range")
    return whole


def _double(value: object) -> float:
    if not isinstance(value, Integer | Fraction) or abs(number := float(value)) == inf:
        raise ValueError("not a number in range")
    return number or 0.0 if isinstance(value, Integer) else number


def _float(value: object) -> float:
    with np.errstate(over="ignore"):
        number = float(np.float32(_double(value)))
    if abs(number) == inf:
        raise ValueError("not a number in range")
    return number


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a boolean")
    return value


def _decimal(value: object, type_: types.Decimal) -> Decimal:
    given = number(value) if type(value) is str else value
    if not isinstance(given, Integer | Fraction):
        raise ValueError("not a decimal")
    if (found := rounded(Decimal(given), type_)) is None:
        raise ValueError("out of range")
    return found


def _date(value: object) -> int:
    if type(value) is not str or not _DATE.fullmatch(day := value.strip(BLANKS)):
        raise ValueError("not a date")
    return date.fromisoformat(day).toordinal() - _DAY_ZERO


def _timestamp(read: Callable[[object], Instant | None]) -> Reader:
    def of(value: object) -> int:
        if (time := read(value)) is None:
            raise ValueError("not a time")
        return time.micros

    return of


_SCALARS: dict[types.DataType, Reader] = {
    types.STRING: text,
    types.BOOLEAN: _boolean,
    types.DOUBLE: _double,
    types.FLOAT: _float,
    types.DATE: _date,
}
