"""Bytes to values: strict RFC 8259, types without guesses, times only with an offset."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, NoReturn

from tests.oracle.rules import SourceRecord

MAX_DEPTH = 500
MAX_DIGITS = 5000
MAX_NAME = 50_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
WRITTEN_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
BLANKS = " \t\n\r\f\v"
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
DAY, CLOCK = r"(\d{4}-\d\d-\d\d)", r"(\d\d:\d\d)(?:(:\d\d)(?:[.,](\d+))?)?"
OFFSET = r"(?:Z|UTC|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)"
ISO = re.compile(rf"{DAY}[T ]{CLOCK} ?{OFFSET}(?:\[[\w/+-]+\])?", re.ASCII)
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
UNIT = {"epoch_seconds": timedelta(seconds=1), "epoch_millis": timedelta(milliseconds=1)}


class Number(str):
    """A JSON number as its source text: 1.50 stays 1.50 and 1e5 stays 1e5."""

    __slots__ = ()


def read_files(files: Iterable[tuple[bytes, datetime]]) -> list[SourceRecord]:
    """The records of JSON-lines files in recorded order: (content, modification time) each."""
    records = []
    for sequence, (content, modified) in enumerate(files):
        start = 0
        for line in content.split(b"\n"):
            if line.strip(b" \t\r"):
                records.append(SourceRecord(0, sequence << 36 | start, line, modified))
            start += len(line) + 1
    return records


def parse_document(value: bytes) -> Any:
    """The one JSON document in ``value``; numbers as Number. Raises ValueError on any other."""
    text = value.decode("utf-8")
    if is_deep(text):
        raise ValueError("nested too deep")
    return json.loads(
        text,
        parse_int=number,
        parse_float=number,
        parse_constant=refuse,
        object_pairs_hook=unique,
    )


def number(text: str) -> Number:
    if len(re.sub(r"\D", "", text)) > MAX_DIGITS:
        raise ValueError("too many digits")
    return Number(text)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object. If a name occurs twice, the last field counts."""
    if any(len(name) > MAX_NAME for name, _ in pairs):
        raise ValueError("a name too long")
    return dict(pairs)


def refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def is_deep(text: str) -> bool:
    """Whether the brackets of a valid document are nested too deep; undefined for an invalid
    one."""
    level = 0
    for token in TOKEN.finditer(text):
        level += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
        if level > MAX_DEPTH:
            return True
    return False


def typed(value: Any, type_: str) -> Any:
    """``value`` as a declared type, null as null. Raises ValueError if it has another type."""
    if value is None:
        return None
    if "<" in type_:
        return typed_parts(value, type_)
    kind, _, arguments = type_.rstrip(")").partition("(")
    if kind == "string":
        return as_string(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind in BITS and isinstance(value, Number):
        return as_integer(value, BITS[kind])
    if kind in ("float", "double") and isinstance(value, Number):
        return as_float(value, kind)
    if kind == "decimal" and isinstance(value, str):
        precision, scale = (int(part) for part in arguments.split(","))
        return as_decimal(value, precision, scale)
    if kind in ("date", "timestamp") and type(value) is str:
        text = value.strip(BLANKS)
        return as_date(text) if kind == "date" else as_timestamp(text)
    raise ValueError(f"not a {type_}")


def typed_parts(value: Any, type_: str) -> Any:
    """A nested value: lists, and dicts for maps and structs."""
    kind, _, inside = type_.removesuffix(">").partition("<")
    parts = [part.strip() for part in split_types(inside)]
    if kind == "array" and isinstance(value, list):
        return [typed(item, parts[0]) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {in_utf8(name): typed(item, parts[1]) for name, item in value.items()}
    if kind == "struct" and isinstance(value, dict):
        fields = (part.split(":", 1) for part in parts)
        return {name: typed(value.get(name), of.strip()) for name, of in fields}
    raise ValueError(f"not a {kind}")


def split_types(text: str) -> list[str]:
    """The types between the commas that are outside of all brackets."""
    parts, level = [""], 0
    for character in text:
        level += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def as_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return number_text(value)
    if isinstance(value, str):
        return in_utf8(value)
    raise ValueError("not a string")


def in_utf8(text: str) -> str:
    """The text with a question mark for each lone surrogate, which UTF-8 cannot encode, as in
    Java."""
    return text.encode("utf-8", "replace").decode("utf-8")


def number_text(value: Number) -> str:
    """A whole number as it is written. A number with a fraction or an exponent as Java writes its
    double: 1.50 becomes 1.5, 1e7 becomes 1.0E7."""
    if value.lstrip("-").isdigit():
        return "0" if value == "-0" else str(value)
    double = as_float(value, "double")
    if double == 0 or 1e-3 <= abs(double) < 1e7:
        return repr(double)
    sign, digits, exponent = Decimal(repr(double)).normalize().as_tuple()
    first, *rest = map(str, digits)
    scale = int(exponent) + len(rest)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{scale}"


def as_integer(value: Number, bits: int) -> int:
    if set(value) & set(".eE"):
        double = float(value)
        if not double.is_integer() or abs(double) >= 2**53:
            raise ValueError("not whole, or not the only whole number with this double")
        number = int(double)
    elif len(value) > 20:  # longer than any bigint: JSON has no leading zeros
        raise ValueError("out of range")
    else:
        number = int(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError("out of range")
    return number


def as_float(value: Number, kind: str) -> float:
    number = float(value)
    if abs(number) == float("inf"):
        raise ValueError("out of range")
    if kind == "double":
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueError("out of range") from None


def as_decimal(value: str, precision: int, scale: int) -> Decimal:
    value = value.strip(BLANKS)
    if not WRITTEN_NUMBER.fullmatch(value):
        raise ValueError("not a number")
    try:
        return rounded(Decimal(str(value)), precision, scale)
    except InvalidOperation:
        raise ValueError("out of range") from None


def rounded(number: Decimal, precision: int, scale: int) -> Decimal:
    """Half up to ``scale``. Raises InvalidOperation if it needs more than ``precision`` digits."""
    context = Context(prec=precision, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
    result = number.quantize(Decimal(1).scaleb(-scale), context=context)
    return result if result else abs(result)


def as_date(value: str) -> date:
    if not DATE.fullmatch(value):
        raise ValueError("not yyyy-MM-dd")
    return date.fromisoformat(value)


def as_timestamp(value: str) -> datetime:
    """ISO with an offset, cut to microseconds, in UTC."""
    day, clock, seconds, fraction, sign, *parts = iso_parts(value)
    hours, minutes, rest = (int(part or 0) for part in parts)
    offset = timedelta(hours=hours, minutes=minutes, seconds=rest)
    if offset > timedelta(hours=18) or max(minutes, rest) > 59:
        raise ValueError("no such offset")
    if clock.startswith("24"):
        raise ValueError("no such hour")
    local = datetime.fromisoformat(f"{day}T{clock}{seconds or ''}")
    local += timedelta(microseconds=int(f"{(fraction or '0')[:6]:0<6}"))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        return local.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise ValueError("outside the years 1 to 9999") from None


def iso_parts(value: str) -> tuple[str, ...]:
    match = ISO.fullmatch(re.sub("[tz]", lambda found: found[0].upper(), value))
    if not match:
        raise ValueError("not an ISO time with an offset")
    return match.groups()


def event_time(value: Any, time_format: str) -> datetime:
    """A record's event time by its declared format. Raises ValueError if it cannot be parsed, or is
    before the year 10."""
    time = _event_time(value, time_format)
    if time.year < 10:
        raise ValueError("before the year 10")
    return time


def _event_time(value: Any, time_format: str) -> datetime:
    if time_format == "iso":
        parsed: datetime = typed(value, "timestamp")
        return parsed
    if not isinstance(value, Number):
        raise ValueError("not a JSON integer")
    try:
        return EPOCH + as_integer(value, 64) * UNIT[time_format]
    except OverflowError:
        raise ValueError("outside the years 1 to 9999") from None


def id_text(values: Sequence[Any], types: Sequence[str]) -> str | None:
    """One column: its text; several: a JSON array of their texts. None if a value is null or an
    empty text. Raises ValueError if one has another type."""
    texts = [exact_text(value, type_) for value, type_ in zip(values, types, strict=True)]
    known = [text for text in texts if text]
    if len(known) < len(texts):
        return None
    return known[0] if len(known) == 1 else json_text(known)


def exact_text(given: Any, type_: str) -> str | None:
    """The text of a value with all of its digits, also those that a column does not keep."""
    value = typed(given, type_)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        digits = (iso_parts(given.strip(BLANKS))[3] or "").rstrip("0")
        clock = value.replace(microsecond=0, tzinfo=None).isoformat(" ")
        return f"{clock}.{digits}" if digits else clock
    if isinstance(value, Decimal):
        exact = Decimal(given)
        return f"{value:f}" if value == exact else without_zeros(exact)
    if isinstance(value, int) and Decimal(given) != value:
        raise ValueError("not whole, if all digits count")
    if type_ == "string" and isinstance(given, Number) and not given.lstrip("-").isdigit():
        exact = Decimal(given)
        return value if Decimal(value) == exact else without_zeros(exact)
    return str(value)


def without_zeros(number: Decimal) -> str:
    sign, digits, exponent = number.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    dropped = len(digits) - len(significant)
    kept = tuple(map(int, significant))
    return str(Decimal((sign, kept, int(exponent) + dropped)))


def json_text(value: Any) -> str:
    """Compact JSON; numbers keep their source text."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json_text(name)}:{json_text(item)}" for name, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
