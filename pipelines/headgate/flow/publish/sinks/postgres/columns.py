"""The columns of a table in PostgreSQL, their differences from those of Headgate's table, and rows
in the text format of COPY.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyarrow import types

from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.writers import KEY, SinkRefusalError

_SCALARS = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "smallint"),
    (types.is_int16, "smallint"),
    (types.is_int32, "integer"),
    (types.is_int64, "bigint"),
    (types.is_float32, "real"),
    (types.is_float64, "double precision"),
    (types.is_string, "text"),
    (types.is_large_string, "text"),
    (types.is_binary, "bytea"),
    (types.is_large_binary, "bytea"),
    (types.is_date32, "date"),
    (types.is_timestamp, "timestamp with time zone"),
)


def column_types(schema: pa.Schema) -> dict[str, str]:
    """The type of each column as PostgreSQL's ``format_type`` writes it, the hash first."""
    return {KEY: "bytea", **{field.name: type_of(field.type) for field in schema}}


def type_of(type_: pa.DataType) -> str:
    """The name of a type in PostgreSQL. Nested values are JSON documents."""
    if types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    return next((name for fits, name in _SCALARS if fits(type_)), "jsonb")


def missing_columns(declared: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """The declared columns that a table does not have."""
    return {name: type_ for name, type_ in declared.items() if name not in there}


def require_fitting(
    sink: PostgresSink, of: str, declared: Mapping[str, str], there: Mapping[str, str]
) -> None:
    """Raises SinkRefusalError if a table has columns that are not ``declared``, or that have
    another type. Missing columns are accepted, because they can be added. ``of`` is the name of the
    publication."""
    if problems := list(_problems(sink.quoted, of, declared, there)):
        raise SinkRefusalError(
            f"{sink.name} has other columns than {of}: {'; '.join(problems)}. Or write to another "
            "table: change the key table of the publication"
        )


def _problems(
    table: str, of: str, declared: Mapping[str, str], there: Mapping[str, str]
) -> Iterator[str]:
    for name, type_ in there.items():
        wanted = declared.get(name)
        if wanted is None:
            yield f'{of} has no column {name}; type: ALTER TABLE {table} DROP COLUMN "{name}"'
        elif wanted != type_:
            alter = f'ALTER TABLE {table} ALTER COLUMN "{name}" TYPE {wanted}'
            yield f"column {name} is {type_}, and must be {wanted}; type: {alter}"


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


def copy_lines(rows: pa.Table, schema: pa.Schema) -> Iterator[bytes]:
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
