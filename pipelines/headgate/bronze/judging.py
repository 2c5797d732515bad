"""What is wrong with a suspect record, if anything: plain Python over its bytes.

The parser gave the record its fields; this decides whether they count. Strict RFC 8259: one
document, valid UTF-8, no comments, single quotes, NaN or trailing text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isinf

import pyarrow as pa

from headgate.bronze.reasons import Reason
from headgate.spec.model import FileFormat, Record

VERDICTS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("reason_column", pa.string()),
        ("rescued", pa.string()),
    ]
)
VERDICTS_DDL = "partition int, offset bigint, reason string, reason_column string, rescued string"


@dataclass(frozen=True)
class Verdict:
    """``reason`` is None for a record that is fit after all; ``column`` is the first one of the
    wrong type; ``rescued`` is a JSON object of the fields nobody declared."""

    reason: Reason | None = None
    column: str | None = None
    rescued: str | None = None


@dataclass(frozen=True)
class Unclear:
    """A suspect record: its text, what the parser found missing, whether it complained, and the
    columns whose text it could not convert."""

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


def judge(unclear: Unclear, record: Record, format: FileFormat) -> Verdict:
    """The verdict on one record, in the order of :class:`Reason`."""
    try:
        document = _document(unclear.text)
    except (ValueError, RecursionError):
        return Verdict(Reason.UNPARSABLE)
    if not isinstance(document, _Object):
        return Verdict(Reason.NOT_AN_OBJECT)
    if unclear.no_id or _has_nested_id(document, record):
        return Verdict(Reason.MISSING_ID)
    if unclear.no_time:
        given = document.get(record.event_time.column) is not None
        return Verdict(Reason.UNPARSABLE_TIME if given else Reason.MISSING_TIME)
    return _judge_fields(document, unclear, record, format)


def _has_nested_id(document: _Object, record: Record) -> bool:
    """The parser takes an object for a text, and its text for an id."""
    return any(isinstance(document.get(name), dict | list) for name in record.event_id)


def _judge_fields(
    document: _Object, unclear: Unclear, record: Record, format: FileFormat
) -> Verdict:
    for column in record.schema:
        value = document.get(column.name)
        misfit = format != "csv" and value is not None and not _fits(value, column.type)
        if misfit or column.name in unclear.unconverted:
            return Verdict(Reason.WRONG_TYPE, column.name)
    # The parser also complains of a wrong type that a later field of the same name makes good.
    if unclear.corrupt and not document.repeats_keys:
        return Verdict(Reason.WRONG_TYPE)
    unknown = {k: v for k, v in document.items() if k not in {c.name for c in record.schema}}
    if unknown and record.unknown_fields == "quarantine":
        return Verdict(Reason.UNKNOWN_FIELD)
    if unknown and record.unknown_fields == "rescue":
        return Verdict(rescued=json.dumps(_numbers(unknown), ensure_ascii=False))
    return Verdict()


def _document(text: bytes | None) -> object:
    if text is None:
        raise ValueError("no text")
    return json.loads(
        text.decode("utf-8"),
        parse_int=_Integer,
        parse_float=_Fraction,
        parse_constant=_refuse,
        object_pairs_hook=_object,
    )


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _object(pairs: list[tuple[str, object]]) -> _Object:
    found = _Object(pairs)
    found.repeats_keys = len(found) < len(pairs)
    return found


def _numbers(value: object) -> object:
    """Numbers kept as text until now become numbers again."""
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    if isinstance(value, _Integer | _Fraction):
        return int(value) if isinstance(value, _Integer) and len(value) < 25 else float(value)
    return value


_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def _fits(value: object, type_: str) -> bool:
    """Whether a JSON value that is not null has the declared type. Times and dates in text are
    the parser's to judge."""
    if type_ in _BITS:
        half = 1 << (_BITS[type_] - 1)
        return isinstance(value, _Integer) and len(value) < 25 and -half <= int(value) < half
    if type_ in ("double", "float"):
        return isinstance(value, _Integer | _Fraction) and not isinf(float(value))
    if match := _DECIMAL.fullmatch(type_):
        return _fits_decimal(value, int(match[1]), int(match[2]))
    if type_ == "boolean":
        return isinstance(value, bool)
    if type_ == "string":
        return not isinstance(value, dict | list)
    if type_ == "date":
        return type(value) is str and _is_date(value)
    return type(value) is str or type_ == "timestamp"


def _is_date(text: str) -> bool:
    """Spark would also take ``2026``, ``2026-3-1`` or a time behind the date."""
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
        number = Decimal(value.replace(",", ""))
        if not number.is_finite() or number.adjusted() > precision - scale:
            return False
        rounded = _WIDE.quantize(number, Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return False
    return rounded.adjusted() < precision - scale or not rounded


def judge_batches(
    record: Record, format: FileFormat
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's Python workers run over suspect records (``VERDICTS``)."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist(
                [_row(row, record, format) for row in batch.to_pylist()], VERDICTS
            )

    return run


def _row(row: dict[str, object], record: Record, format: FileFormat) -> dict[str, object]:
    place = {"partition": row.pop("partition"), "offset": row.pop("offset")}
    verdict = judge(Unclear(**row), record, format)  # type: ignore[arg-type]
    return place | {
        "reason": None if verdict.reason is None else verdict.reason.value,
        "reason_column": verdict.column,
        "rescued": verdict.rescued,
    }
