"""Columns of decoded values as Arrow arrays, one kind of column for each declared type.

Values in a plain form are converted together, a column at a time. All others are converted one by
one, by the rules of ``values``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration import types
from headgate.declaration.time_forms import TimeForm
from headgate.flow.bronze.decoding.cell_columns import Cell
from headgate.flow.bronze.decoding.column_type import (
    ColumnType,
    Plain,
    Wrong,
    flags,
    or_none,
    patched,
    raw_texts,
)
from headgate.flow.bronze.decoding.documents import read_document
from headgate.flow.bronze.decoding.event_times import ISO, is_epoch
from headgate.flow.bronze.decoding.texts import BITS, WIDTHS, plain_decimal
from headgate.flow.bronze.decoding.time_columns import Date, Epoch, Time
from headgate.flow.bronze.decoding.values import MOST_WHOLE, reader


class Whole(Plain):
    """Integers, which may be written with a fraction or an exponent, such as 3.0."""

    def __init__(self, bits: int) -> None:
        half = 1 << (bits - 1)
        super().__init__(Annotated[int, msgspec.Meta(ge=-half, le=half - 1)] | float, WIDTHS[bits])
        self._first, self._last = max(-half, -MOST_WHOLE), min(half - 1, MOST_WHOLE)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        try:
            found = pa.array(values)
        except pa.ArrowInvalid:  # a double, beside an integer that no double is equal to
            integers = pa.array([v if type(v) is int else None for v in values], self.arrow)
            return integers, np.array([type(v) is float for v in values])
        if not pa.types.is_floating(found.type):
            return found.cast(self.arrow), None
        in_range = pc.and_(pc.greater_equal(found, self._first), pc.less_equal(found, self._last))
        fits = pc.and_(in_range, pc.equal(pc.floor(found), found))
        wrong = ~flags(pc.fill_null(fits, True))
        return pc.if_else(fits, found, None).cast(self.arrow), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        return or_none(np.array([type(value) is float for value in values], np.bool_))


class Float(Plain):
    """A double may be beyond a float's range."""

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        array = pa.array(values, pa.float64()).cast(self.arrow)
        beyond = pc.fill_null(pc.is_inf(array), False)
        if not pc.any(beyond).as_py():
            return array, None
        return pc.if_else(beyond, None, array), flags(beyond)


class DecimalNumber(ColumnType):
    """The decoder keeps the JSON text of a decimal: a number, or a number in quotes."""

    json = msgspec.Raw

    def __init__(self, type_: types.Decimal) -> None:
        self.arrow = pa.decimal128(type_.precision, type_.scale)
        self._plain = f'^"?{plain_decimal(type_)}"?$'
        self._read = reader(type_)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = raw_texts(values)
        plain = pc.match_substring_regex(texts, self._plain)
        numbers = pc.utf8_trim(pc.if_else(plain, texts, None), '"').cast(self.arrow)
        odd = np.flatnonzero(flags(pc.fill_null(pc.invert(plain), False)))
        if not len(odd):
            return numbers, None
        read, wrong = [], np.zeros(len(values), np.bool_)
        for row in odd:
            try:
                read.append(self._read(read_document(bytes(values[int(row)]))))
            except (ValueError, RecursionError):
                read.append(None)
                wrong[row] = True
        return patched(numbers, odd, pa.array(read, self.arrow)), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        exact = pc.match_substring_regex(raw_texts(values), self._plain)
        return or_none(~flags(pc.fill_null(exact, True)))


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
        self.names, self.columns = tuple(fields), tuple(fields.values())
        self.json = document_of(self.names, self.columns) | None
        self.arrow = pa.struct([(name, column.arrow) for name, column in fields.items()])

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        arrays, wrong = [], np.zeros(len(values), np.bool_)
        for i, column in enumerate(self.columns):
            array, misfits = column.array(self.part(i, values))
            arrays.append(array)
            if misfits is not None:
                wrong |= misfits
        absent = pa.array([value is None for value in values], pa.bool_())
        structs = pa.StructArray.from_arrays(arrays, fields=list(self.arrow), mask=absent)
        return structs, or_none(wrong)

    @staticmethod
    def part(i: int, values: Sequence[Any]) -> list[Any]:
        """The values of the field at the place ``i``."""
        name = f"f{i}"
        return [None if value is None else getattr(value, name) for value in values]


def document_of(
    names: Sequence[str], columns: Sequence[ColumnType], *, strict: bool = False
) -> Any:
    """The class to which the decoder converts an object with fields of some ``names``. Its
    attributes are f0, f1, ..., because a name is not always a valid Python identifier. If
    ``strict``, the decoder refuses undeclared fields."""
    return msgspec.defstruct(
        "Document",
        [(f"f{i}", column.json, None) for i, column in enumerate(columns)],
        rename={f"f{i}": name for i, name in enumerate(names)},
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
}


@lru_cache(maxsize=1024)
def json_column(type_: types.DataType, times: TimeForm = ISO) -> ColumnType:
    """The column of a declared type in JSON, whose timestamps have the form ``times``."""
    if type_ in BITS:
        return Whole(BITS[type_])
    if types.is_decimal(type_):
        return DecimalNumber(type_)
    if isinstance(type_, types.Array):
        return List(json_column(type_.element, times))
    if isinstance(type_, types.Map):
        return MapOf(json_column(type_.value, times))
    if isinstance(type_, types.Struct):
        return StructOf({name: json_column(field, times) for name, field in type_.fields})
    if type_ == types.TIMESTAMP:
        return Epoch(times, is_csv=False) if is_epoch(times) else Time(times)
    column, json, arrow = _SCALARS[type_]
    return column(json, arrow)


@lru_cache(maxsize=1024)
def cell_column(type_: types.DataType, times: TimeForm = ISO) -> ColumnType:
    """The column of a declared type in CSV, where all cells are texts."""
    if type_ == types.TIMESTAMP and is_epoch(times):
        return Epoch(times, is_csv=True)
    if type_ == types.STRING or types.is_time(type_):
        return json_column(type_, times)
    return Cell(type_, json_column(type_).arrow)
