"""Rows of Arrow tables as JSON objects, as Spark's ``to_json`` writes them.

A null field is left out. A time has milliseconds, and more digits only if it needs them. A date or
time outside the years 1 to 9999 is an integer, in its column's unit. A map's keys are texts. A text
that is not UTF-8 keeps its bytes, and so its document is not UTF-8 either. Bytes without a type are
a text if they are UTF-8, and else an object with their base64, which has no scalar type.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite, isnan
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.lake.tables.record_shape import double_text

encode = msgspec.json.Encoder().encode
_ROWS = 8192
_INSTANT = pa.timestamp("us", "UTC")  # the type of INT96
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the seconds of the years 1 to 9999 since 1970
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}  # nanoseconds reach no other years
_ARE_BYTES = (
    *(pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_binary_view, pa.types.is_fixed_size_binary),
)
_NEEDLESS = r"(\.\d{3}(?:\d{3})*?)(?:000)+$"


def row_documents(rows: pa.RecordBatch) -> pa.Array:
    """Each row as a JSON object."""
    objects = _objects(rows.schema.names, rows.columns, rows.num_rows)
    return pa.array(map(encode, objects), pa.binary())


def parquet_rows(raw: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, some thousands at once. Raises OSError and pa.ArrowException, the
    latter also if two columns, or two fields of a struct, have the same name."""
    opened = pq.ParquetFile(
        raw, page_checksum_verification=True, coerce_int96_timestamp_unit="us", pre_buffer=False
    )
    leaves = map(opened.schema.column, range(len(opened.schema)))
    given = opened.schema_arrow
    _require_distinct(list(given))
    wanted = pa.schema([_read_as(field, leaves) for field in given])
    for batch in opened.iter_batches(_ROWS):
        # Not safe: whether a text is UTF-8 is decided for each record.
        yield batch if wanted == given else batch.cast(wanted, safe=False)


def _require_distinct(fields: Sequence[pa.Field], of: str = "") -> None:
    """Raises pa.ArrowInvalid if fields have the same name: JSON would keep only the last of them.
    ``of`` is the path of their parent."""
    names = [f"{of}{field.name}" for field in fields]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise pa.ArrowInvalid(f"several columns are named {', '.join(twice)}; rename them")
    for name, field in zip(names, fields, strict=True):
        if pa.types.is_nested(field.type):
            _require_distinct(_parts(field.type), f"{name}.")


def _read_as(field: pa.Field, leaves: Iterator[pq.ColumnSchema]) -> pa.Field:
    """A field as it is to be read. ``leaves`` are Parquet's columns from its first one on: each
    value that has no parts is a column, however deep it is."""
    type_ = field.type
    if pa.types.is_nested(type_):
        given = _parts(type_)
        parts = [_read_as(part, leaves) for part in given]
        return field if parts == given else field.with_type(_nested_type(type_, parts))
    leaf = next(leaves)
    if leaf.physical_type == "INT96":
        return field.with_type(_INSTANT)
    return field.with_type(pa.string()) if leaf.logical_type.type == "ENUM" else field


def _parts(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(type_):
        return list(type_)
    return [type_.key_field, type_.item_field] if pa.types.is_map(type_) else [type_.value_field]


def _nested_type(type_: pa.DataType, parts: list[pa.Field]) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct(parts)
    return pa.map_(*parts) if pa.types.is_map(type_) else pa.large_list(*parts)


def _objects(names: Sequence[str], columns: Iterable[pa.Array], count: int) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, column in zip(names, columns, strict=True):
        for fields, value in zip(objects, _values(column), strict=True):
            if value is not None:
                fields[name] = value
    return objects


def _values(array: pa.Array) -> list[Any]:
    """Each value in the form that the encoder writes."""
    type_ = array.type
    if pa.types.is_nested(type_):
        return _nested(array)
    if pa.types.is_dictionary(type_):
        return _values(array.dictionary_decode())
    if pa.types.is_timestamp(type_):
        return _dated(array, _times)
    if pa.types.is_date(type_):
        return _dated(array, lambda dates: dates.cast(pa.string()).to_pylist())
    if pa.types.is_time(type_) or pa.types.is_duration(type_):
        return array.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(type_):
        # The shortest text of a float, which differs from that of the equal double.
        return [_of(_floating, text) for text in array.cast(pa.string()).to_pylist()]
    if pa.types.is_decimal(type_):
        return [_of(_decimal, value) for value in array.to_pylist()]
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _texts(array)
    if any(is_bytes(type_) for is_bytes in _ARE_BYTES):
        return [_of(_bytes, value) for value in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def _of(convert: Any, value: Any) -> Any:
    return None if value is None else convert(value)


def _nested(array: pa.Array) -> list[Any]:
    if pa.types.is_struct(array.type):
        names = [field.name for field in array.type]
        objects = _objects(names, array.flatten(), len(array))
        valid = array.is_valid().to_pylist()
        return [fields if there else None for fields, there in zip(objects, valid, strict=True)]
    if pa.types.is_map(array.type):
        pair = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        array = array.cast(pa.list_(pair))
        keys, values = (_values(column) for column in array.flatten().flatten())
        try:
            flat: Iterable[Any] = zip(map(_key, keys), values, strict=True)
            return [_of(dict, entries) for entries in _grouped(array, flat)]
        except UnicodeDecodeError:
            flat = zip(map(_key_as_given, keys), values, strict=True)
            return [_of(_object_as_given, entries) for entries in _grouped(array, flat)]
    return _grouped(array, _values(array.flatten()))


def _grouped(lists: pa.Array, flat: Iterable[Any]) -> list[Any]:
    """The elements of each list."""
    left = iter(flat)
    lengths = pc.list_value_length(lists).to_pylist()
    return [None if length is None else list(islice(left, length)) for length in lengths]


def _key(key: Any) -> str:
    """Raises UnicodeDecodeError."""
    return key if isinstance(key, str) else encode(key).decode()


def _key_as_given(key: Any) -> bytes:
    text = encode(key)
    return text if text.startswith(b'"') else bytes(_as_given(text))


def _object_as_given(entries: Iterable[tuple[bytes, Any]]) -> msgspec.Raw:
    return msgspec.Raw(b"{%b}" % b",".join(b"%b:%b" % (key, encode(v)) for key, v in entries))


def _dated(array: pa.Array, write: Callable[[pa.Array], list[Any]]) -> list[Any]:
    """What ``write`` gives for dates or times. It is not called for those outside the years 1 to
    9999, for which Arrow fails, or writes another year; these are integers."""
    type_, day = array.type, 86_400
    if pa.types.is_date32(type_):
        numbers, first, last = array.cast(pa.int32()), _FIRST // day, _LAST // day
    else:
        unit = _PER_SECOND.get("ms" if pa.types.is_date64(type_) else type_.unit)
        if unit is None:
            return write(array)
        numbers, first, last = array.cast(pa.int64()), _FIRST * unit, (_LAST + 1) * unit - 1
    known = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
    if pc.all(known).as_py():
        return write(array)
    written = write(pc.if_else(known, array, None))
    pairs = zip(written, numbers.to_pylist(), strict=True)
    return [number if text is None else text for text, number in pairs]


def _times(array: pa.Array) -> list[Any]:
    zone = "Z" if array.type.tz else ""
    unit = "ms" if array.type.unit == "s" else array.type.unit
    texts = pc.strftime(array.cast(pa.timestamp(unit)), "%Y-%m-%dT%H:%M:%S")
    shorter = pc.replace_substring_regex(texts, _NEEDLESS, r"\1")
    return pc.binary_join_element_wise(shorter, zone, "").to_pylist()  # type: ignore[no-any-return]


def _texts(array: pa.Array) -> list[Any]:
    try:
        return array.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [_of(_text, value) for value in array.cast(pa.large_binary()).to_pylist()]


def _text(value: bytes) -> str | msgspec.Raw:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _as_given(value)


def _as_given(value: bytes) -> msgspec.Raw:
    """Text that is not UTF-8 as a text of JSON. With a replacement for its bytes, different texts,
    such as ids, would be equal."""
    quoted = json.dumps(value.decode("utf-8", "surrogateescape"), ensure_ascii=False)
    return msgspec.Raw(quoted.encode("utf-8", "surrogateescape"))


def _bytes(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _decimal(value: Decimal) -> msgspec.Raw:
    return msgspec.Raw(str(value).encode())


def _floating(text: str) -> msgspec.Raw | str:
    number = float(text)
    if not isfinite(number):
        return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return msgspec.Raw(double_text(number).encode())
