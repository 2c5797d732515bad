"""Finds the quarantine reason of a flagged record, if there is one: plain Python over its bytes.

The values of fields come from Spark's parser. This module only decides whether they are valid:
strict RFC 8259: one
document, valid UTF-8, no comments, single quotes, NaN or trailing text, within ``limits``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from itertools import accumulate
from math import inf

import pyarrow as pa

from headgate.bronze.details import mismatch, time_form, type_form, undeclared
from headgate.bronze.limits import MAX_DEPTH, MAX_DIGITS, MAX_NAME
from headgate.bronze.reasons import Reason
from headgate.declaration import types
from headgate.declaration.model import Record, RecordFormat

RESULTS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("reason_column", pa.string()),
        ("reason_detail", pa.string()),
        ("rescued", pa.string()),
    ]
)
RESULTS_DDL = (
    "partition int, offset bigint, reason string, reason_column string, reason_detail string, "
    "rescued string"
)


@dataclass(frozen=True)
class ValidationResult:
    """``reason`` is None for a valid record; ``column`` is the first column of the wrong type;
    ``detail`` says what was expected and shows the value; ``rescued`` is a JSON object of the
    undeclared fields."""

    reason: Reason | None = None
    column: str | None = None
    rescued: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class ParsedRecord:
    """A flagged record: its text, whether the parser found no id or no time, whether the parser
    reported it as corrupt, and the columns whose text it could not convert."""

    text: bytes | None
    no_id: bool = False
    no_time: bool = False
    corrupt: bool = False
    unconverted: Sequence[str] = ()


class _Integer(str):
    """A JSON integer, as written."""


class _Fraction(str):
    """A JSON number with a fraction or an exponent, as written."""


class _Object(dict[str, object]):
    repeats_keys = False


def validate(parsed: ParsedRecord, record: Record, format: RecordFormat) -> ValidationResult:
    """Validate one record. Reasons are checked in the order of :class:`Reason`."""
    try:
        document = _document(parsed.text)
    except (ValueError, RecursionError):
        return ValidationResult(Reason.UNPARSABLE)
    if not isinstance(document, _Object):
        return ValidationResult(Reason.NOT_AN_OBJECT)
    if parsed.no_id or (format != "csv" and _has_invalid_id(document, record)):
        return ValidationResult(Reason.MISSING_ID)
    if parsed.no_time:
        rule = record.event_time
        if (given := document.get(rule.column)) is None:
            return ValidationResult(Reason.MISSING_TIME)
        return ValidationResult(
            Reason.UNPARSABLE_TIME, detail=mismatch(rule.column, _json(given), time_form(rule))
        )
    return _validate_fields(document, parsed, record, format)


def _has_invalid_id(document: _Object, record: Record) -> bool:
    """The parser reads an object as text, and would use that text as an id."""
    declared = {c.name: c.type for c in record.schema}
    return any(not _fits(document.get(name), declared[name]) for name in record.event_id)


def _validate_fields(
    document: _Object, parsed: ParsedRecord, record: Record, format: RecordFormat
) -> ValidationResult:
    for column in record.schema:
        value = document.get(column.name)
        invalid = format != "csv" and not _fits(value, column.type)
        if invalid or column.name in parsed.unconverted:
            detail = mismatch(column.name, _json(value), type_form(column.type))
            return ValidationResult(Reason.WRONG_TYPE, column.name, detail=detail)
    # The parser also reports a wrong type if a later field of the same name has the right one.
    if parsed.corrupt and not document.repeats_keys:
        return ValidationResult(Reason.WRONG_TYPE)
    unknown = {k: v for k, v in document.items() if k not in {c.name for c in record.schema}}
    if unknown and record.unknown_fields == "quarantine":
        return ValidationResult(Reason.UNKNOWN_FIELD, detail=undeclared(unknown))
    if unknown and record.unknown_fields == "rescue":
        # A lone surrogate cannot be encoded as UTF-8. It becomes a question mark, as in Spark.
        return ValidationResult(rescued=_json(unknown).encode("utf-8", "replace").decode("utf-8"))
    return ValidationResult()


def _document(text: bytes | None) -> object:
    if text is None:
        raise ValueError("no text")
    decoded = text.decode("utf-8")
    document = json.loads(
        decoded,
        parse_int=lambda number: _Integer(_limited(number)),
        parse_float=lambda number: _Fraction(_limited(number)),
        parse_constant=_refuse,
        object_pairs_hook=_object,
    )
    if _depth(decoded) > MAX_DEPTH:
        raise ValueError("nested too deep")
    return document


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _depth(document: str) -> int:
    """The nesting depth of a valid document; 0 if it cannot exceed the limit."""
    if document.count("{") + document.count("[") <= MAX_DEPTH:
        return 0
    brackets = _BRACKET.findall(_TEXT.sub("", document))
    return max(accumulate(1 if bracket in "{[" else -1 for bracket in brackets), default=0)


def _limited(number: str) -> str:
    if len(number) > MAX_DIGITS and sum(map(str.isdigit, number)) > MAX_DIGITS:
        raise ValueError("a number with too many digits")
    return number


def _object(pairs: list[tuple[str, object]]) -> _Object:
    found = _Object(pairs)
    if max(map(len, found), default=0) > MAX_NAME:
        raise ValueError("a name that is too long")
    found.repeats_keys = len(found) < len(pairs)
    return found


def _json(value: object) -> str:
    """``value`` as JSON, with numbers as they were written. Loops use one stack frame per level,
    so that ``MAX_DEPTH`` fits Python's stack."""
    parts = []
    if isinstance(value, dict):
        for name, item in value.items():
            parts.append(f"{json.dumps(name, ensure_ascii=False)}: {_json(item)}")
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        for item in value:
            parts.append(_json(item))
        return "[" + ", ".join(parts) + "]"
    if isinstance(value, _Integer | _Fraction):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[{\]}]")
_BITS = dict(zip(types.INTEGRALS, (8, 16, 32, 64), strict=True))
_BEYOND = {types.DOUBLE: inf, types.FLOAT: 2.0**128 - 2.0**103}  # rounds to infinity
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def _fits(value: object, type_: types.DataType) -> bool:
    """Whether a JSON value has the declared type. Null has every type. Times in text are validated
    by the parser's expressions."""
    if value is None:
        return True
    if type_ in _BITS:
        half = 1 << (_BITS[type_] - 1)
        return isinstance(value, _Integer) and len(value) < 25 and -half <= int(value) < half
    if type_ in _BEYOND:
        return isinstance(value, _Integer | _Fraction) and abs(float(value)) < _BEYOND[type_]
    if types.is_decimal(type_):
        return _fits_decimal(value, type_.precision, type_.scale)
    if type_ == types.BOOLEAN:
        return isinstance(value, bool)
    if type_ == types.STRING:
        # The parser converts a fraction to a double, then to text.
        overflows = isinstance(value, _Fraction) and not _fits(value, types.DOUBLE)
        return not isinstance(value, dict | list) and not overflows
    if type_ == types.DATE:
        return type(value) is str and _is_date(value)
    return type(value) is str or type_ == types.TIMESTAMP


def _is_date(text: str) -> bool:
    """Spark would also accept ``2026``, ``2026-3-1`` or a time after the date."""
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _fits_decimal(value: object, precision: int, scale: int) -> bool:
    if not isinstance(value, str):
        return False
    if type(value) is str and not _PLAIN_NUMBER.fullmatch(value):
        return False
    try:
        number = Decimal(value)
        if number and number.adjusted() > precision - scale:
            return False
        rounded = _WIDE.quantize(number, Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return False
    return rounded.adjusted() < precision - scale or not rounded


def validate_batches(
    record: Record, format: RecordFormat
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that computes ``RESULTS`` of flagged records. The driver calls it if they are
    few, otherwise Spark's Python workers do."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist(
                [_row(row, record, format) for row in batch.to_pylist()], RESULTS
            )

    return run


def _row(row: dict[str, object], record: Record, format: RecordFormat) -> dict[str, object]:
    place = {"partition": row.pop("partition"), "offset": row.pop("offset")}
    result = validate(ParsedRecord(**row), record, format)  # type: ignore[arg-type]
    return place | {
        "reason": None if result.reason is None else result.reason.value,
        "reason_column": result.column,
        "reason_detail": result.detail,
        "rescued": result.rescued,
    }
