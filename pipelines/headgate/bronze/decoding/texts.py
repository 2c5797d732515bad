"""Texts, such as the cells of CSV, as declared types.

The rules are those of Spark's ``cast`` outside ANSI mode, which gives null if it cannot convert.
Numbers in a plain form are converted by Arrow, all others one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from math import copysign, inf, nan

import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration import types
from headgate.declaration.types import DataType

Convert = Callable[[str], object]
"""Converts a text to a value; None if this is not possible."""

_CONTROL = "".join(map(chr, range(0x20)))
_BLANK = _CONTROL + " "  # what Java's trim removes
_BLANK_BYTE = _BLANK + "\x7f"

_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))

_INTEGER = re.compile(r"([+-]?[0-9]*)(?:\.[0-9]*)?")
_FLOATING = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_NAMED = dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), inf)
_NAMED |= {"-inf": -inf, "-infinity": -inf, "nan": nan}
_DIGIT = "[^\\D\U00010000-\U0010ffff]"  # Java's digits are in the first plane only
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGIT}+\.?({_DIGIT}*)|\.({_DIGIT}+))(?:[eE]([+-]?{_DIGIT}+))?")

BITS = dict(zip(types.INTEGRALS, (8, 16, 32, 64), strict=True))
WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
_MOST_SCALE = (1 << 31) - 1  # of a BigDecimal in Java
_FLOAT_END = 2.0**128  # numbers from here on are infinite as floats


def cast_texts(texts: pa.StringArray | pa.ChunkedArray, type_: DataType) -> pa.Array:
    """``texts`` as a boolean, a number or text; null if a text cannot be converted."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if type_ == types.STRING:
        return texts
    arrow, plain, convert = _rules(type_)
    is_plain = pc.match_substring_regex(texts, plain)
    found = pc.if_else(is_plain, texts, None).cast(arrow)
    is_odd = pc.fill_null(pc.invert(is_plain), False)
    odd = [convert(text) for text in texts.filter(is_odd).to_pylist()]
    return pc.replace_with_mask(found, is_odd, pa.array(odd, arrow)) if odd else found


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


def _rules(type_: DataType) -> tuple[pa.DataType, str, Convert]:
    """The Arrow type, the pattern of texts that Arrow converts, and the conversion of others."""
    if types.is_decimal(type_):
        arrow = pa.decimal128(type_.precision, type_.scale)
        return arrow, f"^{plain_decimal(type_)}$", _decimal(type_)
    if type_ in BITS:
        bits = BITS[type_]
        digits = len(str(1 << (bits - 1))) - 1
        return WIDTHS[bits], f"^-?[0-9]{{1,{digits}}}$", _integer(bits)
    if type_ == types.BOOLEAN:
        return pa.bool_(), "^(?:true|false)$", _boolean
    convert = _double if type_ == types.DOUBLE else _float
    arrow = pa.float64() if type_ == types.DOUBLE else pa.float32()
    return arrow, r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$", convert


def _boolean(text: str) -> bool | None:
    word = text.strip(_BLANK_BYTE).lower()
    return word in _TRUE if word in _TRUE or word in _FALSE else None


def _integer(bits: int) -> Convert:
    """A fraction is cut off."""
    half = 1 << (bits - 1)

    def convert(text: str) -> int | None:
        written = text.strip(_BLANK_BYTE)
        if written in ("", "+", "-") or not (found := _INTEGER.fullmatch(written)):
            return None
        digits = found[1].lstrip("+-").lstrip("0")
        if len(digits) > len(str(half)):
            return None
        number = int(digits or "0") * (-1 if found[1].startswith("-") else 1)
        return number if -half <= number < half else None

    return convert


def _double(text: str) -> float | None:
    """As Java parses it, or a special value in letters of any case."""
    written = text.strip(_BLANK)
    if found := _FLOATING.fullmatch(written):
        return float(found[1])
    if found := _HEX.fullmatch(written):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return copysign(inf, -1 if written.startswith("-") else 1)
    return nan if written in ("-NaN", "+NaN") else _NAMED.get(written.lower())


def _float(text: str) -> float | None:
    """The nearest float, not converted from the nearest double: this would round twice."""
    number, found = _double(text), _FLOATING.fullmatch(text.strip(_BLANK))
    if number is None or not found:
        return number
    if abs(number) >= _FLOAT_END:
        return copysign(inf, number)
    return float(pa.scalar(found[1].removeprefix("+")).cast(pa.float32()).as_py())


def _decimal(type_: types.Decimal) -> Convert:
    """Rounded half up; digits may be those of any script."""

    def convert(text: str) -> Decimal | None:
        if not (found := _DECIMAL.fullmatch(text.strip(_BLANK))):
            return None
        # Not an int, which would be an error if it had more than 4,300 digits, even zeros.
        exponent, scale = Decimal(found[3] or 0), len(found[1] or found[2] or "")
        if not scale - _MOST_SCALE <= exponent <= _MOST_SCALE:
            return None
        number = Decimal(found[0])
        if number.adjusted() >= types.MAX_PRECISION:
            return None
        return rounded(number, type_)

    return convert
