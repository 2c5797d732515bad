"""Types as they are written in a declaration, and as they print.

The parser descends into nested types. An error inside a nested type is reported with its path, such
as ``items.element.price`` for a field of the structs in an array.
"""

from __future__ import annotations

import re

from headgate.declaration.errors import Invalid
from headgate.declaration.names import in_other_case, nearest
from headgate.declaration.types import (
    DECLARED,
    MAX_PRECISION,
    STRING,
    SYNONYMS,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
)

MAX_LEVELS = 20
"""The greatest depth of nested types. A type is much flatter than the documents it is read from."""
MAX_FIELDS = 1_000
"""The greatest number of fields in all structs of one type."""
FIELD_PATTERN = r"[A-Za-z_][A-Za-z0-9_]{0,62}"

_LIKELY = {"text": "string", "str": "string", "varchar": "string", "char": "string"}
_LIKELY |= {"datetime": "timestamp", "number": "decimal(18,2)", "numeric": "decimal(18,2)"}
_LIKELY |= {"decimal": "decimal(18,2)", "int64": "bigint", "int32": "int", "float64": "double"}
_LIKELY |= {"timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp"}
_LIKELY |= {"list": "array<string>", "object": "struct<name: string>", "json": "string"}
_NESTED = {"array": "array<string>", "map": "map<string,string>", "struct": "struct<name: string>"}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)")
_LEADS = re.compile(r"(array|map|struct)\s*(<|$)", re.IGNORECASE)
_TOKEN = re.compile(r"\s*(`[^`]*`|[^\s<>():,`]+|\([^()<>]*\)|[<>():,`])")


def scalar_type(text: str) -> DataType:
    """A type without parts. Raises Invalid with the nearest valid type."""
    lower = re.sub(r"\s+", " ", text.strip().lower())
    lower = SYNONYMS.get(lower, lower)
    if lower in DECLARED:
        return DECLARED[lower]
    if found := _DECIMAL.fullmatch(lower):
        precision, scale = int(found[1]), int(found[2] or 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise Invalid(f"{lower} is out of range: 1 <= precision <= 38, 0 <= scale <= precision")
        return Decimal(precision, scale)
    base = re.split(r"[(<]", lower)[0].strip()
    if base == "decimal":
        raise Invalid(f"{text!r} needs a precision and a scale", _LIKELY[base])
    raise Invalid(f"{text!r} is not a supported type", _LIKELY.get(base) or nearest(base, DECLARED))


def parse_type(text: str) -> DataType:
    """A type as it is written or printed, up to ``MAX_LEVELS`` deep. Raises Invalid with the
    nearest valid type, and with the path of the error."""
    return _TypeReader(text).read()


class _TypeReader:
    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens = _TOKEN.findall(self._text)
        self._at = 0
        self._fields = 0

    def read(self) -> DataType:
        if not _LEADS.match(self._text):
            return scalar_type(self._text)
        type_ = self._type((), 0)
        if self._at < len(self._tokens):
            raise Invalid(f"{self._text!r} is not a supported type: nothing can follow {type_}")
        return type_

    def _type(self, path: tuple[str, ...], level: int) -> DataType:
        word = self._take()
        kind = word.lower()
        if self._next() == "<" and kind in _NESTED:
            if level == MAX_LEVELS:
                message = f"a type has at most {MAX_LEVELS} arrays, maps and structs in each other"
                raise self._wrong(path, message)
            self._at += 1
            return {"array": self._array, "map": self._map, "struct": self._struct}[kind](
                path, level + 1
            )
        if kind in _NESTED and self._next() != "<":
            raise self._wrong(path, f"{word!r} needs the types of its parts", _NESTED[kind])
        if self._next().startswith("("):
            word += self._take()
        try:
            return scalar_type(word)
        except Invalid as error:
            raise self._wrong(path, error.message, error.nearest) from None

    def _array(self, path: tuple[str, ...], level: int) -> DataType:
        element = self._type((*path, "element"), level)
        self._close(path, "an array has one type of elements", "array<string>")
        return Array(element)

    def _map(self, path: tuple[str, ...], level: int) -> DataType:
        at = (*path, "key")
        key = self._type(at, level)
        if key != STRING:
            message = f"the keys of a map are strings, not {key}"
            raise self._wrong(at, message, "string")
        if self._take() != ",":
            raise self._wrong(path, "a map has a type of values", "map<string,string>")
        value = self._type((*path, "value"), level)
        self._close(path, "a map has a type of keys and one of values", "map<string,string>")
        return Map(key, value)

    def _struct(self, path: tuple[str, ...], level: int) -> DataType:
        fields: dict[str, DataType] = {}
        while True:
            name = self._field_name(path, fields)
            if self._next() == ":":
                self._at += 1
            fields[name] = self._type((*path, name), level)
            if self._next() != ",":
                break
            self._at += 1
        self._close(path, f"a comma or > must follow the field {name!r}")
        return Struct.of(fields)

    def _field_name(self, path: tuple[str, ...], above: dict[str, DataType]) -> str:
        written = self._take()
        name = written.strip("`")
        if not re.fullmatch(FIELD_PATTERN, name):
            said = "a struct has fields, such as struct<name: string>"
            if re.match(r"[\w`]", written):
                said = (
                    f"{name!r} is not a name of a field: letters, digits and underscores, "
                    "no digit first, at most 63"
                )
            raise self._wrong(path, said)
        if name in above:
            raise self._wrong(path, f"has the field {name!r} twice")
        if (twin := in_other_case(name, above)) is not None:
            message = f"the fields {twin!r} and {name!r} differ only in case, and a table cannot "
            raise self._wrong(path, f"{message}hold both")
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise self._wrong((), f"a type has at most {MAX_FIELDS} fields")
        return name

    def _close(self, path: tuple[str, ...], message: str, guess: str | None = None) -> None:
        if self._take() != ">":
            raise self._wrong(path, message, guess)

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def _wrong(self, path: tuple[str, ...], message: str, guess: str | None = None) -> Invalid:
        """An error with the path inside the type, if there is one. The key of the problem names the
        column."""
        return Invalid(f"{'.'.join(path)}: {message}" if path else message, guess)
