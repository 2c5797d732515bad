"""Parts of SQL for DuckDB. Names are quoted; values are parameters, never text of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.declaration.types import (
    Array,
    DataType,
    Decimal,
    Map,
    Scalar,
    Struct,
)
from headgate.insight.querying.sandbox import quoted

_SCALARS = {
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}


@dataclass(frozen=True)
class Condition:
    """A condition over a row, and its parameters."""

    text: str = "true"
    parameters: tuple[object, ...] = ()


ALL = Condition()


def all_of(*conditions: Condition) -> Condition:
    texts = [f"({each.text})" for each in conditions if each.text != "true"]
    return Condition(
        " AND ".join(texts) or "true", tuple(p for each in conditions for p in each.parameters)
    )


def listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def duck_type(type_: DataType) -> str:
    """The type of DuckDB that holds the values of a declared type."""
    match type_:
        case Scalar(name):
            return _SCALARS[name]
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Array(element):
            return f"{duck_type(element)}[]"
        case Map(key, value):
            return f"MAP({duck_type(key)}, {duck_type(value)})"
        case Struct(fields):
            inner = ", ".join(f"{quoted(name)} {duck_type(each)}" for name, each in fields)
            return f"STRUCT({inner})"
        case _:
            raise TypeError(f"{type_} has no type of DuckDB")


def label(columns: Sequence[str], most: int = 80) -> str:
    """The values of some columns as one short text."""
    parts = [f"coalesce(left(CAST({quoted(c)} AS VARCHAR), {most}), 'null')" for c in columns]
    return f"concat_ws(' · ', {', '.join(parts)})"
