"""Columns of decoded values as Arrow arrays, one kind of column for each declared type.

Values in a plain form are converted together, a column at a time. All others are converted one by
one, by the rules of ``values``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.bronze.decoding.documents import read_document
from headgate.bronze.decoding.event_times import ISO, text_micros
from headgate.bronze.decoding.texts import BITS, WIDTHS, cast_texts, plain_decimal
from headgate.bronze.decoding.times import Flags
from headgate.bronze.decoding.values import reader
from headgate.declaration import types

Wrong = Flags | None
"""Which values do not have the declared type; None if all have it."""


class ColumnType(ABC):
    """``json`` is the type that the decoder produces, ``arrow`` is the type in bronze."""

    json: Any
    arrow: pa.DataType

    @abstractmethod
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        """The decoded values as an array, null if a value is wrong; and which values are wrong."""


class Plain(ColumnType):
    """Values that the decoder has checked."""

    def __init__(self, json: Any, arrow: pa.DataType) -> None:
        self.json, self.arrow = json | None, arrow

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        return pa.array(values, self.arrow), None


class Float(Plain):
    """A double may be beyond a float's range."""

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        array = pa.array(values, pa.float64()).cast(self.arrow)
        beyond = pc.fill_null(pc.is_inf(array), False)
        if not pc.any(beyond).as_py():
            return array, None
        return pc.if_else(beyond, None, array), flags(beyond)


class Time(Plain):
    """Timestamps that are not the event time."""

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(texts, ISO)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return pa.array(micros, mask=~valid).cast(self.arrow), _or_none(wrong)


class Date(Plain):
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(pc.binary_join_element_wise(texts, _MIDNIGHT, ""), ISO)
        days = pa.array((micros // 86_400_000_000).astype(np.int32), mask=~valid)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return days.cast(self.arrow), _or_none(wrong)


_MIDNIGHT = "T00:00:00Z"


class DecimalNumber(ColumnType):
    """The decoder keeps the JSON text of a decimal: a number, or a number in quotes."""

    json = msgspec.Raw

    def __init__(self, type_: types.Decimal) -> None:
        self.arrow = pa.decimal128(type_.precision, type_.scale)
        self._plain = f'^"?{plain_decimal(type_)}"?$'
        self._read = reader(type_)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        given = [None if value is None else bytes(value) for value in values]
        texts = pa.array(given, pa.binary()).cast(pa.string())
        texts = pc.if_else(pc.equal(texts, "null"), None, texts)
        plain = pc.match_substring_regex(texts, self._plain)
        numbers = pc.utf8_trim(pc.if_else(plain, texts, None), '"').cast(self.arrow)
        odd = np.flatnonzero(flags(pc.fill_null(pc.invert(plain), False)))
        if not len(odd):
            return numbers, None
        read, wrong = [], np.zeros(len(values), np.bool_)
        for row in odd:
            try:
                read.append(self._read(read_document(given[row])))
            except (ValueError, RecursionError):
                read.append(None)
                wrong[row] = True
        return patched(numbers, odd, pa.array(read, self.arrow)), _or_none(wrong)


class Cell(Plain):
    """Text in CSV, converted to its declared type."""

    def __init__(self, type_: types.DataType, arrow: pa.DataType) -> None:
        super().__init__(str, arrow)
        self._type = type_

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        array = cast_texts(texts, self._type)
        wrong = flags(pc.and_(pc.is_valid(texts), pc.is_null(array)))
        return array, _or_none(wrong)


class List(ColumnType):
    def __init__(self, element: ColumnType) -> None:
        self.json, self.arrow = list[element.json] | None, pa.list_(element.arrow)  # type: ignore[name-defined]
        self._element = element

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        items = list(chain.from_iterable(filter(None, values)))
        array, wrong = self._element.array(items)
        offsets, absent, owners = _spans(values)
        lists = pa.ListArray.from_arrays(offsets, array, type=self.arrow, mask=absent)
        return lists, _owners_of(wrong, owners, len(values))


class MapOf(ColumnType):
    def __init__(self, value: ColumnType) -> None:
        self.json, self.arrow = dict[str, value.json] | None, pa.map_(pa.string(), value.arrow)  # type: ignore[name-defined]
        self._value = value

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        present = [value for value in values if value]
        keys = pa.array(list(chain.from_iterable(present)), pa.string())
        items, wrong = self._value.array(list(chain.from_iterable(v.values() for v in present)))
        offsets, absent, owners = _spans(values)
        maps = pa.MapArray.from_arrays(offsets, keys, items, type=self.arrow, mask=absent)
        return maps, _owners_of(wrong, owners, len(values))


class StructOf(ColumnType):
    def __init__(self, fields: Mapping[str, ColumnType]) -> None:
        self._columns = tuple(fields.values())
        self.json = document_of(fields) | None
        self.arrow = pa.struct([(name, column.arrow) for name, column in fields.items()])

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        arrays, wrong = [], np.zeros(len(values), np.bool_)
        for i, column in enumerate(self._columns):
            name = f"f{i}"
            array, misfits = column.array([None if v is None else getattr(v, name) for v in values])
            arrays.append(array)
            if misfits is not None:
                wrong |= misfits
        absent = pa.array([value is None for value in values], pa.bool_())
        structs = pa.StructArray.from_arrays(arrays, fields=list(self.arrow), mask=absent)
        return structs, _or_none(wrong)


def document_of(columns: Mapping[str, ColumnType], *, strict: bool = False) -> Any:
    """The class to which the decoder converts an object. Its attributes are f0, f1, ..., because a
    declared name is not always a valid Python identifier. If ``strict``, the decoder refuses
    undeclared fields."""
    names = {f"f{i}": name for i, name in enumerate(columns)}
    return msgspec.defstruct(
        "Document",
        [(f"f{i}", column.json, None) for i, column in enumerate(columns.values())],
        rename=names,
        forbid_unknown_fields=strict,
        gc=False,
    )


def _spans(values: Sequence[Any]) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
    """Where each value's items begin and end, which values are null, and the value of each item."""
    lengths = np.array([len(value) if value else 0 for value in values], np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    absent = pa.array([value is None for value in values], pa.bool_())
    return pa.array(offsets), absent, np.repeat(np.arange(len(values)), lengths)


def _owners_of(wrong: Wrong, owners: npt.NDArray[np.int64], count: int) -> Wrong:
    if wrong is None:
        return None
    found = np.zeros(count, np.bool_)
    found[owners[wrong]] = True
    return found


_SCALARS: dict[types.DataType, tuple[type[Plain], Any, pa.DataType]] = {
    types.STRING: (Plain, str, pa.string()),
    types.BOOLEAN: (Plain, bool, pa.bool_()),
    types.DOUBLE: (Plain, float, pa.float64()),
    types.FLOAT: (Float, float, pa.float32()),
    types.DATE: (Date, str, pa.date32()),
    types.TIMESTAMP: (Time, str, pa.timestamp("us", "UTC")),
}


@lru_cache(maxsize=1024)
def json_column(type_: types.DataType) -> ColumnType:
    """The column of a declared type in JSON."""
    if type_ in BITS:
        half = 1 << (BITS[type_] - 1)
        return Plain(Annotated[int, msgspec.Meta(ge=-half, le=half - 1)], WIDTHS[BITS[type_]])
    if types.is_decimal(type_):
        return DecimalNumber(type_)
    if isinstance(type_, types.Array):
        return List(json_column(type_.element))
    if isinstance(type_, types.Map):
        return MapOf(json_column(type_.value))
    if isinstance(type_, types.Struct):
        return StructOf({name: json_column(field) for name, field in type_.fields})
    column, json, arrow = _SCALARS[type_]
    return column(json, arrow)


@lru_cache(maxsize=1024)
def cell_column(type_: types.DataType) -> ColumnType:
    """The column of a declared type in CSV, where all cells are texts."""
    if type_ == types.STRING or types.is_time(type_):
        return json_column(type_)
    return Cell(type_, json_column(type_).arrow)


def patched(array: pa.Array, rows: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """``array`` with other values at some rows."""
    taken = np.arange(len(array))
    taken[rows] = len(array) + np.arange(len(values))
    return pa.concat_arrays([array, values]).take(pa.array(taken))


def _or_none(wrong: Flags) -> Wrong:
    return wrong if wrong.any() else None


def flags(array: pa.Array) -> Flags:
    """Booleans without nulls as a NumPy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
