"""The columns of a table in PostgreSQL, and how they differ from those of Headgate's table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


def missing(declared: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
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
