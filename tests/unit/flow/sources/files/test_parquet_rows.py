"""Rows of Parquet as JSON objects; tests/spark compares them with those of Spark."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.declaration.model import Column, EventTime, Record
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import STRING, TIMESTAMP
from headgate.flow.bronze.decoding.decoder import Decoder
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import records_from
from headgate.flow.sources.files.rows import parquet_rows, row_documents
from tests.oracle.parse import typed

AT = datetime(2026, 3, 1, 11)  # noqa: DTZ001
ZONED = "2026-03-01T11:00:00.000Z"
INSTANT = pa.timestamp("us")


def parquet(columns: dict[str, pa.Array], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def read(file: bytes) -> list[bytes]:
    batches = parquet_rows(pa.BufferReader(file))
    return [row for batch in batches for row in row_documents(batch).to_pylist()]


def rows(columns: dict[str, pa.Array]) -> list[dict[str, Any]]:
    return [json.loads(row) for row in read(parquet(columns))]


def decoded(values: Sequence[bytes], **types: str) -> list[dict[str, Any]]:
    """The rows that bronze has for some documents."""
    schema = {"id": "string", "at": "timestamp"} | types
    columns = tuple(Column(name, parse_type(type_)) for name, type_ in schema.items())
    record = Record(("id",), EventTime("at"), columns)
    file = LoggedFile(1, "a.parquet", 1, AT, AT)
    block = records_from(file, 0, {"value": pa.array(values, pa.binary())})
    found: list[dict[str, Any]] = Decoder(record, "parquet").decode(block).to_pylist()
    return found


def not_utf8(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


LATIN = ("Zürich".encode("latin-1"), "Zörich".encode("latin-1"))


def test_text_that_is_not_utf_8_keeps_its_bytes_and_is_unparsable() -> None:
    ids = not_utf8(LATIN[0], LATIN[1], "Zürich".encode(), None, b'\xff"\\\n')
    found = read(parquet({"id": ids, "at": pa.array([ZONED] * 5)}))
    assert found[:2] == [b'{"id":"%b","at":"%b"}' % (each, ZONED.encode()) for each in LATIN]
    assert found[4] == b'{"id":"\xff\\"\\\\\\n","at":"%b"}' % ZONED.encode()
    bronze = decoded(found)
    assert [row["reason"] for row in bronze] == [
        *("unparsable", "unparsable", None),
        *("missing_id", "unparsable"),
    ]
    assert [row["event_id"] for row in bronze] == [None, None, "Zürich", None, None]
    assert [row["value"] for row in bronze] == found


def test_nested_text_that_is_not_utf_8_is_unparsable_in_its_row_alone() -> None:
    texts = not_utf8(b"ok", b"\xe9", b"fine", b"\xfc")
    key, value = texts.take(pa.array([1, 0])), texts.take(pa.array([0, 1]))
    for column in (
        pa.ListArray.from_arrays([0, 1, 3, 4], texts),
        pa.StructArray.from_arrays([texts[:3]], ["f"]),
        pa.MapArray.from_arrays([0, 1, 2, 2], texts[:2], texts[:1].take(pa.array([0, 0]))),
        pa.MapArray.from_arrays([0, 1, 2, 2], texts[:1].take(pa.array([0, 0])), texts[:2]),
        texts[:3].dictionary_encode(),
    ):
        ids, times = pa.array(["a", "b", "c"]), pa.array([ZONED] * 3)
        found = read(parquet({"id": ids, "at": times, "it": column}))
        is_list = pa.types.is_list(column.type)
        expected = [None, "unparsable", "unparsable" if is_list else None]
        assert [row["reason"] for row in decoded(found)] == expected, column.type
        assert b"\xe9" in found[1]
    several = pa.MapArray.from_arrays([0, 2], key, value)
    assert read(parquet({"it": several})) == [b'{"it":{"\xe9":"ok","ok":"\xe9"}}']


def test_naive_times_and_all_digits_of_ids_arrive() -> None:
    """As pandas writes them: times in nanoseconds without a zone, and names with blanks."""
    noon = np.datetime64("2026-03-01T11:00:00.123456789", "ns")
    columns = {
        "read at": pa.array([noon, noon + 1], pa.timestamp("ns")),
        "price": pa.array([Decimal("1.0010"), Decimal("1.0010")], pa.decimal128(9, 4)),
        "ratio": pa.array([0.1, 0.1]),
    }
    schema = (
        Column("at", TIMESTAMP, "read at"),
        Column("price", parse_type("decimal(9,2)")),
        Column("ratio", STRING),
    )
    zoned = EventTime("at", "iso", "Europe/Paris")
    record = Record(("at", "price", "ratio"), zoned, schema)
    block = records_from(
        LoggedFile(1, "a.parquet", 1, AT, AT), 0, {"value": pa.array(read(parquet(columns)))}
    )
    found = Decoder(record, "parquet").decode(block).to_pylist()
    assert [row["event_id"] for row in found] == [
        '["2026-03-01 10:00:00.123456789","1.001","0.1"]',
        '["2026-03-01 10:00:00.12345679","1.001","0.1"]',
    ]
    naive = Record(("at",), EventTime("at"), schema)
    (row, _) = Decoder(naive, "parquet").decode(block).to_pylist()
    assert row["reason"] == "missing_id"
    assert row["reason_detail"].endswith(
        "(it has no offset: add the key zone beside its format, such as zone: UTC)"
    )


def test_int96_is_an_instant_at_every_depth() -> None:
    record = pa.struct([("t", INSTANT), ("n", pa.int8())])
    columns = {
        "s": pa.array([{"t": AT, "n": 1}, None], record),
        "l": pa.array([[AT, None], []], pa.list_(INSTANT)),
        "large": pa.array([[AT, None], []], pa.large_list(INSTANT)),
        "pair": pa.array([[AT, None], [AT, AT]], pa.list_(INSTANT, 2)),
        "m": pa.array([[("k", AT)], None], pa.map_(pa.string(), INSTANT)),
        "keys": pa.array([[(AT, 1)], []], pa.map_(INSTANT, pa.int8())),
        "deep": pa.array(
            [[{"t": [AT]}, None], None], pa.list_(pa.struct([("t", pa.list_(INSTANT))]))
        ),
        "s.t": pa.array([1, 2]),
        "names": pa.array(["x", "y"]).dictionary_encode(),
        "top": pa.array([AT, None], INSTANT),
    }
    found = read(parquet(columns, use_deprecated_int96_timestamps=True))
    assert [json.loads(row) for row in found] == [
        {
            "s": {"t": ZONED, "n": 1},
            "l": [ZONED, None],
            "large": [ZONED, None],
            "pair": [ZONED, None],
            "m": {"k": ZONED},
            "keys": {ZONED: 1},
            "deep": [{"t": [ZONED]}, None],
            "s.t": 1,
            "names": "x",
            "top": ZONED,
        },
        {"l": [], "large": [], "pair": [ZONED, ZONED], "keys": {}, "s.t": 2, "names": "y"},
    ]
    (row,) = decoded(
        [b'{"id":"a","at":"%b",%b' % (ZONED.encode(), found[0][1:])], s="struct<t: timestamp>"
    )
    assert row["reason"] is None


def test_an_enum_is_text_at_every_depth() -> None:
    names = pa.array(["red", "blué"])
    columns = {
        "e": names,
        "s": pa.StructArray.from_arrays([names], ["e"]),
        "l": pa.ListArray.from_arrays([0, 1, 2], names),
        "b": pa.array([b"ab", b"\xff"]),
    }
    found = read(as_enums(columns))
    assert [json.loads(row) for row in found] == [
        {"e": "red", "s": {"e": "red"}, "l": ["red"], "b": "ab"},
        {"e": "blué", "s": {"e": "blué"}, "l": ["blué"], "b": {"base64": "/w=="}},
    ]
    bad = as_enums({"e": not_utf8(b"\xff", b"ok")})
    assert read(bad) == [b'{"e":"\xff"}', b'{"e":"ok"}']


def test_bytes_without_a_type_are_text_if_they_are_utf_8() -> None:
    """Writers such as Impala, Hive and older Sparks do not say that their bytes are text."""
    texts: list[bytes | None] = ["Zürich".encode(), "Zürich".encode("latin-1"), b"", None]
    for type_ in (pa.binary(), pa.large_binary(), pa.binary(7)):
        is_fixed = pa.types.is_fixed_size_binary(type_)
        given = [None if t is None else t.ljust(7) if is_fixed else t for t in texts]
        values = pa.array(given, type_)
        columns = {
            "id": pa.array(["a", "b", "c", "d"]),
            "at": pa.array([ZONED] * 4),
            "it": values,
            "l": pa.array([[each] for each in given], pa.list_(type_)),
            "s": pa.array([{"f": each} for each in given], pa.struct([("f", type_)])),
            "m": pa.array([[("k", each)] for each in given], pa.map_(pa.string(), type_)),
        }
        types = {"it": "string", "l": "array<string>", "s": "struct<f: string>"}
        found = decoded(read(parquet(columns)), **types, m="map<string,string>")
        good, bad, empty, none = (row["record"] for row in found)
        assert (good["it"], good["l"]) == ("Zürich", ["Zürich"])
        assert (good["s"], good["m"]) == ({"f": "Zürich"}, [("k", "Zürich")])
        assert (empty["it"], none["it"], bad["it"]) == (" " * 7 * is_fixed, None, None)
        assert [row["reason"] for row in found] == [None, "wrong_type", None, None]
        encoded = b64encode(given[1] or b"").decode()
        assert found[1]["reason_column"] == "it"
        assert found[1]["reason_detail"] == f'it is not of type string: {{"base64": "{encoded}"}}'


def test_bytes_that_are_not_utf_8_are_no_id() -> None:
    ids = pa.array(["Zürich".encode("latin-1"), b"b"], pa.binary())
    found = decoded(read(parquet({"id": ids, "at": pa.array([ZONED] * 2)})))
    assert [(row["event_id"], row["reason"]) for row in found] == [
        (None, "missing_id"),
        ("b", None),
    ]


def as_enums(columns: dict[str, pa.Array]) -> bytes:
    """A file whose columns of text are BINARY (ENUM), as parquet-avro writes them. pyarrow cannot
    write them, so this changes the footer: the converted type and the logical type."""
    text, enum = b"\x25\x00\x4c\x1c\x00\x00", b"\x25\x08\x4c\x4c\x00\x00"
    changed = parquet(columns, store_schema=False).replace(text, enum)
    names = {column.logical_type.type for column in columns_of(changed)}
    assert "ENUM" in names
    assert "STRING" not in names
    return changed


def columns_of(file: bytes) -> list[Any]:
    schema = pq.ParquetFile(pa.BufferReader(file)).schema
    return [schema.column(i) for i in range(len(schema))]


@pytest.mark.parametrize(("unit", "per_second"), [("ms", 1_000), ("us", 1_000_000)])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_outside_the_years_1_to_9999_are_integers(
    unit: str, per_second: int, zone: str | None
) -> None:
    # The last is the year 67562, which Arrow writes as 2026; it fails for the year 32768.
    outside = [-62_135_596_801, 253_402_300_800, 971_890_963_200, 2_069_888_774_400]
    numbers = [second * per_second for second in outside]
    inside = [-62_135_596_800 * per_second, 253_402_300_800 * per_second - 1]
    times = pa.array([*inside, *numbers, None], pa.timestamp(unit, zone))
    found = [row.get("t") for row in rows({"t": times})]
    end = "Z" if zone else ""
    fraction = "9" * (3 if unit == "ms" else 6)
    assert found[:2] == [f"0001-01-01T00:00:00.000{end}", f"9999-12-31T23:59:59.{fraction}{end}"]
    assert found[2:] == [*numbers, None]


def test_such_a_time_is_of_the_wrong_type_and_no_event_time() -> None:
    far = pa.array([2_069_888_774_400_000], pa.timestamp("ms", "UTC"))
    found = read(parquet({"id": pa.array(["a"]), "at": far}))
    assert [row["reason"] for row in decoded(found)] == ["unparsable_time"]
    near = pa.array([ZONED])
    found = read(parquet({"id": pa.array(["a"]), "at": near, "it": far}))
    (row,) = decoded(found, it="timestamp")
    assert (row["reason"], row["reason_column"]) == ("wrong_type", "it")
    with pytest.raises(ValueError, match="not a timestamp"):
        typed(json.loads(found[0])["it"], "timestamp")


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_dates_outside_the_years_1_to_9999_are_integers(type_: pa.DataType) -> None:
    days = [-719_163, 2_932_897, 23_957_051]
    unit = 1 if type_ == pa.date32() else 86_400_000
    numbers = pa.array([day * unit for day in days], pa.int64())
    dates = pa.concat_arrays(
        [
            pa.array([date(1, 1, 1), date(9999, 12, 31), None], type_),
            numbers.cast(pa.int32() if unit == 1 else pa.int64()).cast(type_),
        ]
    )
    batch = pa.record_batch({"d": dates, "l": pa.array([[1]] * 6)})
    found = [json.loads(row).get("d") for row in row_documents(batch).to_pylist()]
    assert found == ["0001-01-01", "9999-12-31", None, *numbers.to_pylist()]


def test_doubles_are_written_as_java_writes_them() -> None:
    numbers = [1e7, -1.25e7, 1e-4, -0.0, 9999999.5, 123456789.125, -1.5e-300]
    singles = pa.array(np.array([0.1, 3.4e38, 1e10], np.float32))
    assert read(parquet({"d": pa.array(numbers)})) == [
        b'{"d":%b}' % text
        for text in (
            *(b"1.0E7", b"-1.25E7", b"1.0E-4", b"-0.0", b"9999999.5"),
            *(b"1.23456789125E8", b"-1.5E-300"),
        )
    ]
    assert read(parquet({"f": singles})) == [b'{"f":0.1}', b'{"f":3.4E38}', b'{"f":1.0E10}']


@pytest.mark.parametrize(
    ("type_", "named"),
    [
        (pa.struct([("b", pa.int64()), ("b", pa.int64())]), "a.b"),
        (pa.list_(pa.struct([("b", pa.int64()), ("b", pa.string())])), "a.element.b"),
    ],
)
def test_fields_of_one_name_are_refused_at_every_depth(type_: pa.DataType, named: str) -> None:
    """Otherwise a document would have only the last of them."""
    file = parquet({"a": pa.array([None], type_)})
    with pytest.raises(pa.ArrowInvalid, match=f"several columns are named {named};"):
        read(file)
    assert rows({"a": pa.array([{"b": 1}]), "b": pa.array([2])}) == [{"a": {"b": 1}, "b": 2}]
