"""The Spark SQL types of columns, as values.

A type prints as Spark writes it: ``decimal(18,2)``, ``array<string>``. Declarations can use the
types of ``DECLARED``, decimals, and arrays, maps and structs of them; the others occur only in
expressions and in states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

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


def is_number(type_: DataType) -> bool:
    return type_ in INTEGRALS or is_floating(type_) or is_decimal(type_)


def is_decimal(type_: DataType | None) -> TypeGuard[Decimal]:
    return isinstance(type_, Decimal)


def is_floating(type_: DataType) -> bool:
    return type_ in (FLOAT, DOUBLE)


def is_time(type_: DataType) -> bool:
    return type_ in (DATE, TIMESTAMP)


def has_map(type_: DataType) -> bool:
    """Whether it is a map or holds one: Spark cannot compare such values."""
    return any(isinstance(part, Map) for part in parts(type_))


def parts(type_: DataType) -> Iterator[DataType]:
    """A type and all types in it."""
    yield type_
    inner: Iterable[DataType] = ()
    if isinstance(type_, Array):
        inner = (type_.element,)
    elif isinstance(type_, Map):
        inner = (type_.key, type_.value)
    elif isinstance(type_, Struct):
        inner = (field for _, field in type_.fields)
    for part in inner:
        yield from parts(part)


def differences(before: DataType, after: DataType, path: str) -> Iterator[str]:
    """Messages such as ``items.element.vat added``, of a column at ``path`` whose type changes."""
    if isinstance(before, Struct) and isinstance(after, Struct):
        old, new = dict(before.fields), dict(after.fields)
        kept = [place for place, name in enumerate(new) if name in old]
        for name in dict.fromkeys((*old, *new)):
            if name in old and name in new:
                yield from differences(old[name], new[name], f"{path}.{name}")
            elif name in old:
                yield f"{path}.{name} removed"
            else:
                is_last = [*new].index(name) > max(kept, default=-1)
                yield f"{path}.{name} added{'' if is_last else ', not at the end of its struct'}"
        if old == new and before != after:
            yield f"{path}: fields in another order"
    elif isinstance(before, Array) and isinstance(after, Array):
        yield from differences(before.element, after.element, f"{path}.element")
    elif isinstance(before, Map) and isinstance(after, Map):
        yield from differences(before.value, after.value, f"{path}.value")
    elif before != after:
        yield f"{path} changed: {before} -> {after}"


def extends(after: DataType, before: DataType) -> bool:
    """Whether a type is another one with any number of fields added, each at the end of its struct.
    A file that has values of ``before`` can be read as ``after``: the added fields are null."""
    if isinstance(before, Struct) and isinstance(after, Struct):
        held = after.fields[: len(before.fields)]
        return len(held) == len(before.fields) and all(
            new == old and extends(theirs, ours)
            for (new, theirs), (old, ours) in zip(held, before.fields, strict=True)
        )
    if isinstance(before, Array) and isinstance(after, Array):
        return extends(after.element, before.element)
    if isinstance(before, Map) and isinstance(after, Map):
        return before.key == after.key and extends(after.value, before.value)
    return before == after


def is_nested(type_: DataType) -> bool:
    return isinstance(type_, Array | Map | Struct)
