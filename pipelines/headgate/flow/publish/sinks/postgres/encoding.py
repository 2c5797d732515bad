"""Rows as the text format of COPY."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import types

_NULL = r"\N"
_SPECIAL = str.maketrans(
    # A text in PostgreSQL cannot contain NUL. It is written as the replacement character.
    {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\x00": "�"}
)
_NUL_IN_JSON = re.compile(r"(\\\\)|\\u0000")
# The range of days in PostgreSQL, in numpy's years (year 0 is 1 BC). 64-bit microseconds end before
# the last day.
_FIRST = np.datetime64("-4712-01-01", "D")
_LAST = np.datetime64("5874897-12-31", "D")
_ROWS = 10_000  # encoded at once


def encoded(rows: pa.Table, schema: pa.Schema) -> Iterator[bytes]:
    """The lines of COPY for some rows, in pieces. ``schema`` has the types of Headgate's table; for
    its nested columns, ``rows`` have JSON texts. A time outside PostgreSQL's range becomes an
    infinity."""
    for batch in rows.to_batches(max_chunksize=_ROWS):
        columns = [
            _texts(batch.column(i), is_json=_is_json(schema, name))
            for i, name in enumerate(batch.schema.names)
        ]
        lines = io.StringIO()
        for row in zip(*columns, strict=True):
            lines.write("\t".join(row))
            lines.write("\n")
        yield lines.getvalue().encode()


def _is_json(schema: pa.Schema, name: str) -> bool:
    found = schema.get_field_index(name)
    return found >= 0 and bool(types.is_nested(schema.field(found).type))


def _texts(column: pa.Array, *, is_json: bool) -> list[str]:
    type_ = column.type
    if types.is_timestamp(type_) or types.is_date(type_):
        return _times(column)
    values = column.to_pylist()
    if types.is_binary(type_) or types.is_large_binary(type_):
        return [_NULL if v is None else rf"\\x{v.hex()}" for v in values]
    if types.is_boolean(type_):
        return [_NULL if v is None else ("t" if v else "f") for v in values]
    if is_json:
        return [_NULL if v is None else _json(v).translate(_SPECIAL) for v in values]
    if types.is_string(type_) or types.is_large_string(type_):
        return [_NULL if v is None else v.translate(_SPECIAL) for v in values]
    return [_NULL if v is None else str(v) for v in values]


def _json(text: str) -> str:
    return _NUL_IN_JSON.sub(lambda found: found[1] or r"\ufffd", text)


def _times(column: pa.Array) -> list[str]:
    """Times and dates of any year, as texts. Years before 1 are written with BC."""
    is_date = types.is_date(column.type)
    unit = "D" if is_date else "us"
    if not is_date:
        column = column.cast(pa.timestamp("us", column.type.tz))
    plain = column.cast(pa.int32() if is_date else pa.int64())
    numbers = plain.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    times = numbers.astype(f"datetime64[{unit}]")
    texts = np.datetime_as_string(times)
    zone = "" if is_date else "+00"
    days = times.astype("datetime64[D]")
    below, above = days < _FIRST, days > _LAST
    nulls = column.is_null().to_pylist()
    return [
        _NULL if null else "-infinity" if low else "infinity" if high else _time(str(text), zone)
        for text, null, low, high in zip(texts, nulls, below, above, strict=True)
    ]


def _time(text: str, zone: str) -> str:
    year, _, rest = text[1:].partition("-") if text.startswith("-") else text.partition("-")
    number = -int(year) if text.startswith("-") else int(year)
    if number > 0:
        return f"{number:04d}-{rest}{zone}"
    return f"{1 - number:04d}-{rest}{zone} BC"
