"""The Spark SQL types of columns, as values.

A type prints as Spark writes it: ``decimal(18,2)``, ``array<string>``. Declarations can use the
types of ``DECLARED`` and decimals; the others are of expressions and of states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from headgate.declaration.errors import Invalid
from headgate.declaration.nearest import nearest

MAX_PRECISION = 38


class DataType:
    """One of the classes below. Equal types are equal values."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Scalar(DataType):
    """A type without parameters."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array(DataType):
    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map(DataType):
    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct(DataType):
    """Fields by name, in order."""

    fields: tuple[tuple[str, DataType], ...]

    @classmethod
    def of(cls, fields: Mapping[str, DataType]) -> Struct:
        return cls(tuple(fields.items()))

    def __str__(self) -> str:
        return f"struct<{', '.join(f'`{name}`: {type_}' for name, type_ in self.fields)}>"


STRING, BOOLEAN, BINARY = Scalar("string"), Scalar("boolean"), Scalar("binary")
TINYINT, SMALLINT, INT, BIGINT = map(Scalar, ("tinyint", "smallint", "int", "bigint"))
FLOAT, DOUBLE = Scalar("float"), Scalar("double")
DATE, TIMESTAMP = Scalar("date"), Scalar("timestamp")
VOID = Scalar("void")
"""The null literal's type: it fits everywhere, but a column cannot have it."""

INTEGRALS = (TINYINT, SMALLINT, INT, BIGINT)
DECLARED = {
    type_.name: type_ for type_ in (STRING, BOOLEAN, *INTEGRALS, FLOAT, DOUBLE, DATE, TIMESTAMP)
}
SYNONYMS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
SYNONYMS |= {"real": "float", "bool": "boolean"}
_LIKELY = {"text": "string", "str": "string", "varchar": "string", "char": "string"}
_LIKELY |= {"datetime": "timestamp", "number": "decimal(18,2)", "numeric": "decimal(18,2)"}
_LIKELY |= {"decimal": "decimal(18,2)", "int64": "bigint", "int32": "int", "float64": "double"}
_LIKELY |= {"timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp"}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)")
_COMES_NEXT = re.compile(r"(array|map|struct|variant|object)\b", re.IGNORECASE)
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(\w+|`[^`]+`)\s*[:\s]\s*(.+)", re.DOTALL)


def is_number(type_: DataType) -> bool:
    return type_ in INTEGRALS or is_floating(type_) or is_decimal(type_)


def is_decimal(type_: DataType | None) -> TypeGuard[Decimal]:
    return isinstance(type_, Decimal)


def is_floating(type_: DataType) -> bool:
    return type_ in (FLOAT, DOUBLE)


def is_text(type_: DataType) -> bool:
    return type_ == STRING


def is_time(type_: DataType) -> bool:
    return type_ in (DATE, TIMESTAMP)


def is_nested(type_: DataType) -> bool:
    return isinstance(type_, Array | Map | Struct)


def declared_type(text: str) -> DataType:
    """The type of a declared column. Raises Invalid with the nearest supported one."""
    if _COMES_NEXT.match(text.strip()):
        raise Invalid(
            f"the type {text} comes next; today, leave the field out, write unknown_fields: "
            "rescue, and take parts of it in silver with get_json_object(_rescued, '$.field.part')"
        )
    return parse_type(text)


def parse_type(text: str) -> DataType:
    """A type as it is written or printed, in any depth. Raises Invalid with the nearest one."""
    lower = text.strip().lower()
    lower = SYNONYMS.get(lower, lower)
    if lower in DECLARED:
        return DECLARED[lower]
    if found := _DECIMAL.fullmatch(lower):
        precision, scale = int(found[1]), int(found[2] or 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise Invalid(f"{lower} is out of range: 1 <= precision <= 38, 0 <= scale <= precision")
        return Decimal(precision, scale)
    if found := _NESTED.fullmatch(text.strip()):
        return _parse_nested(text, found[1].lower(), _split(found[2]))
    base = lower.split("(")[0].strip()
    if base == "decimal":
        raise Invalid(f"{text!r} needs a precision and a scale", _LIKELY[base])
    raise Invalid(f"{text!r} is not a supported type", _LIKELY.get(base) or nearest(base, DECLARED))


def _parse_nested(text: str, kind: str, parts: list[str]) -> DataType:
    fields = [found.groups() for part in parts if (found := _FIELD.fullmatch(part))]
    if kind == "struct" and len(fields) == len(parts):
        return Struct(tuple((name.strip("`"), parse_type(type_)) for name, type_ in fields))
    if kind == "array" and len(parts) == 1:
        return Array(parse_type(parts[0]))
    if kind == "map" and len(parts) == 2:
        return Map(parse_type(parts[0]), parse_type(parts[1]))
    raise Invalid(f"{text!r} is not a supported type")


def _split(text: str) -> list[str]:
    """The parts between the commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
