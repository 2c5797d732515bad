"""Rows of Arrow tables as JSON objects, as Spark's ``to_json`` writes them.

A null field is left out. A time has milliseconds, and more digits only if it needs them. A map's
keys are texts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite, isnan
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

encode = msgspec.json.Encoder().encode
_ROWS = 8192
_INSTANT = pa.timestamp("us", "UTC")  # the type of INT96 columns
_NEEDLESS = r"(\.\d{3}(?:\d{3})*?)(?:000)+$"


def documents(rows: pa.RecordBatch) -> pa.Array:
    """Each row as a JSON object."""
    objects = _objects(rows.schema.names, rows.columns, rows.num_rows)
    return pa.array(map(encode, objects), pa.binary())


def parquet_rows(raw: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, some thousands at once. Raises OSError and pa.ArrowException."""
    opened = pq.ParquetFile(
        raw, page_checksum_verification=True, coerce_int96_timestamp_unit="us", pre_buffer=False
    )
    columns = map(opened.schema.column, range(len(opened.schema)))
    instants = {column.path for column in columns if column.physical_type == "INT96"}
    for batch in opened.iter_batches(_ROWS):
        fields = [
            field.with_type(_INSTANT) if field.name in instants else field for field in batch.schema
        ]
        yield batch.cast(pa.schema(fields)) if instants else batch


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
        return _times(array)
    if pa.types.is_date(type_) or pa.types.is_time(type_) or pa.types.is_duration(type_):
        return array.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(type_):
        # The shortest text of a float, which differs from that of the equal double.
        return [_of(_floating, text) for text in array.cast(pa.string()).to_pylist()]
    if pa.types.is_decimal(type_):
        return [_of(_decimal, value) for value in array.to_pylist()]
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return [_of(_text, value) for value in array.cast(pa.large_binary()).to_pylist()]
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return [_of(_base64, value) for value in array.to_pylist()]
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
        flat: Iterable[Any] = zip(map(_key, keys), values, strict=True)
        return [_of(dict, entries) for entries in _grouped(array, flat)]
    return _grouped(array, _values(array.flatten()))


def _grouped(lists: pa.Array, flat: Iterable[Any]) -> list[Any]:
    """The elements of each list."""
    left = iter(flat)
    lengths = pc.list_value_length(lists).to_pylist()
    return [None if length is None else list(islice(left, length)) for length in lengths]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else encode(key).decode()


def _times(array: pa.Array) -> list[Any]:
    zone = "Z" if array.type.tz else ""
    unit = "ms" if array.type.unit == "s" else array.type.unit
    texts = pc.strftime(array.cast(pa.timestamp(unit)), "%Y-%m-%dT%H:%M:%S")
    shorter = pc.replace_substring_regex(texts, _NEEDLESS, r"\1")
    return pc.binary_join_element_wise(shorter, zone, "").to_pylist()  # type: ignore[no-any-return]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _decimal(value: Decimal) -> msgspec.Raw:
    return msgspec.Raw(str(value).encode())


def _floating(text: str) -> msgspec.Raw | str:
    """As Java writes it: 1.0E10."""
    number = float(text)
    if not isfinite(number):
        return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return msgspec.Raw(repr(number).encode())
    _, digits, _ = parts = Decimal(repr(number)).normalize().as_tuple()
    first, *rest = map(str, digits)
    exponent = len(digits) - 1 + int(parts.exponent)
    sign = "-" if number < 0 else ""
    return msgspec.Raw(f"{sign}{first}.{''.join(rest) or 0}E{exponent}".encode())
