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

from headgate.declaration import types
from headgate.declaration.model import TimeForm
from headgate.flow.bronze.decoding.documents import read_json
from headgate.flow.bronze.decoding.event_times import (
    ISO,
    epoch_micros,
    is_epoch,
    text_micros,
    text_reader,
)
from headgate.flow.bronze.decoding.times import Flags
from headgate.flow.bronze.decoding.values import (
    BITS,
    MOST_WHOLE,
    WIDTHS,
    Misfit,
    cell_value,
    plain_decimal,
    reader,
)

Wrong = Flags | None
"""Which values do not have the declared type; None if all have it."""


class ColumnType(ABC):
    """``json`` is the type that the decoder produces, ``arrow`` is the type in bronze."""

    json: Any
    arrow: pa.DataType

    @abstractmethod
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        """The decoded values as an array, null if a value is wrong; and which values are wrong."""

    def inexact(self, values: Sequence[Any]) -> Wrong:
        """Which decoded values may have more digits than the array keeps. None for none."""
        return None


class Plain(ColumnType):
    """Values that the decoder has checked."""

    def __init__(self, json: Any, arrow: pa.DataType) -> None:
        self.json, self.arrow = json | None, arrow

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        return pa.array(values, self.arrow), None


def raw_texts(values: Sequence[Any]) -> pa.Array:
    """The JSON texts of values that are not decoded; null for null."""
    given = [None if value is None else bytes(value) for value in values]
    texts = pa.array(given, pa.binary()).cast(pa.string())
    return pc.if_else(pc.equal(texts, "null"), None, texts)


def or_none(wrong: Flags) -> Wrong:
    return wrong if wrong.any() else None


def flags(array: pa.Array) -> Flags:
    """Booleans without nulls as a NumPy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def patched(array: pa.Array, rows: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """``array`` with other values at some rows."""
    taken = np.arange(len(array))
    taken[rows] = len(array) + np.arange(len(values))
    return pa.concat_arrays([array, values]).take(pa.array(taken))


INSTANT = pa.timestamp("us", "UTC")


class Time(Plain):
    """Timestamps that are texts."""

    def __init__(self, times: TimeForm) -> None:
        super().__init__(str, INSTANT)
        self._times = times
        self._read = text_reader(times)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(texts, self._times)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return pa.array(micros, mask=~valid).cast(self.arrow), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        if self._times.format != "iso":
            if _MANY_DIGITS not in self._times.format:
                return None
            times = (None if value is None else self._read(value) for value in values)
            return or_none(np.array([bool(time and time.more) for time in times], np.bool_))
        more = pc.match_substring_regex(pa.array(values, pa.string()), _MORE)
        return or_none(flags(pc.fill_null(more, False)))


class Epoch(ColumnType):
    """Timestamps that are numbers, or numbers in quotes. In CSV, all cells are texts."""

    arrow = INSTANT

    def __init__(self, times: TimeForm, *, is_csv: bool) -> None:
        self.json = str | None if is_csv else msgspec.Raw
        self._times, self._is_csv = times, is_csv
        self._read = text_reader(times)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = self._texts(values)
        plain = flags(pc.fill_null(pc.match_substring_regex(texts, _WHOLE), False))
        numbers = pc.if_else(pa.array(plain), texts, "0").cast(pa.int64()).to_numpy()
        micros, valid = epoch_micros(numbers, self._times)
        micros, valid = micros.copy(), valid & plain
        given = flags(pc.is_valid(texts))
        for row in np.flatnonzero(given & ~plain):
            if (time := self._read(texts[row].as_py())) is not None:
                micros[row], valid[row] = time.micros, True
        return pa.array(micros, mask=~valid).cast(self.arrow), or_none(given & ~valid)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        texts = self._texts(values)
        pattern = _WHOLE_MICROS if self._times.format == "epoch_nanos" else _WHOLE
        exact = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
        return or_none(~flags(exact))

    def _texts(self, values: Sequence[Any]) -> pa.Array:
        """The numbers as they are written. Other values keep their quotes, so they are wrong."""
        if self._is_csv:
            return pa.array(values, pa.string())
        texts = raw_texts(values)
        return pc.replace_substring_regex(texts, '^"([^"]*)"$', r"\1")


_MORE = r"[.,][0-9]{6}[0-9]*[1-9]"
_MANY_DIGITS = "S" * 7
_WHOLE = "^-?[0-9]{1,18}$"
_WHOLE_MICROS = "^-?[0-9]{0,15}000$"


class Date(Plain):
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(pc.binary_join_element_wise(texts, _MIDNIGHT, ""), ISO)
        days = pa.array((micros // 86_400_000_000).astype(np.int32), mask=~valid)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return days.cast(self.arrow), or_none(wrong)


_MIDNIGHT = "T00:00:00Z"


_DOUBLE = r"^(?:[0-9]{1,17}|-[1-9][0-9]{0,16}|-?[0-9]{1,17}\.[0-9]{1,25})(?:[eE][+-]?[0-9]{1,2})?$"
"""Not ``-0``, which JSON takes for a whole number and so for 0."""
_WHOLE_NUMBER = r"^(-?[0-9]{1,15})\.0+$"


class Cell(Plain):
    """Numbers and booleans. Those in a plain form are converted by Arrow, others one by one."""

    def __init__(self, type_: types.DataType, arrow: pa.DataType) -> None:
        super().__init__(str, arrow)
        self._type, self._plain = type_, _plain(type_)
        self._read = reader(type_, named=True)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        plain = pc.match_substring_regex(texts, self._plain)
        if self._type in BITS and not pc.all(plain).as_py():
            # Such as 3.0, which pandas writes for whole numbers of a column that has nulls.
            texts = pc.replace_substring_regex(texts, _WHOLE_NUMBER, r"\1")
            plain = pc.match_substring_regex(texts, self._plain)
        wide = pa.float64() if self._type == types.FLOAT else self.arrow
        found = pc.if_else(plain, texts, None).cast(wide).cast(self.arrow)
        odd = ~flags(pc.fill_null(plain, True))
        if self._type == types.FLOAT:
            odd |= flags(pc.fill_null(pc.is_inf(found), False))
        rows = np.flatnonzero(odd)
        return self._completed(found, rows, values) if len(rows) else (found, None)

    def _completed(
        self, found: pa.Array, rows: Any, values: Sequence[Any]
    ) -> tuple[pa.Array, Wrong]:
        read, wrong = list[object](), np.zeros(len(values), np.bool_)
        for row in rows:
            try:
                read.append(self._read(cell_value(values[row], self._type)))
            except Misfit:
                read.append(None)
                wrong[row] = True
        return patched(found, rows, pa.array(read, self.arrow)), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        if self._type not in BITS and not types.is_decimal(self._type):
            return None
        texts = pa.array(values, pa.string())
        exact = pc.match_substring_regex(texts, self._plain)
        return or_none(~flags(pc.fill_null(exact, True)))


def _plain(type_: types.DataType) -> str:
    if types.is_decimal(type_):
        return f"^{plain_decimal(type_)}$"
    if type_ in BITS:
        return f"^-?[0-9]{{1,{len(str(1 << (BITS[type_] - 1))) - 1}}}$"
    return "^(?:true|false)$" if type_ == types.BOOLEAN else _DOUBLE


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
                read.append(self._read(read_json(bytes(values[int(row)]))))
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
