"""The decoder is a shortcut: it gives the same rows as the validator alone, for generated records
and for every line of a hostile producer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.declaration.model import Column, EventTime, Record, RecordFormat
from headgate.declaration.type_parser import parse_type
from headgate.flow.bronze.decoding.decoder import Decoder
from headgate.flow.bronze.decoding.documents import doubtful
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage
from tests.support.decoding import ARRIVED, block, decoded
from tests.support.hostile import HOSTILE
from tests.support.rounds import IN_FULL

TYPES = {
    "id": "string",
    "site": "string",
    "value": "decimal(12,2)",
    "level": "int",
    "weight": "double",
    "share": "float",
    "tiny": "tinyint",
    "big": "bigint",
    "part": "decimal(3,3)",
    "wide": "decimal(38,0)",
    "ok": "boolean",
    "day": "date",
    "seen": "timestamp",
    "at": "timestamp",
    "items": "array<struct<sku: string, price: decimal(6,2), n: int, tags: array<string>>>",
    "extra": "map<string, struct<v: float, at: timestamp, more: map<string, array<date>>>>",
}
RECORD = Record(
    event_id=("id",),
    event_time=EventTime("at"),
    schema=tuple(Column(name, parse_type(type_)) for name, type_ in TYPES.items()),
)


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["-0", "127", "-128", "128", "2147483647", "-2147483649", "9" * 19, "9" * 39]),
    st.sampled_from(
        ["1e2", "1.50", "0.5", "-0.0", "1e-7", "3.4028235e38", "3.4028236e38", "1e308"]
    ),
    st.sampled_from(["1e309", "0.999", "0.9995", "12.345", "1e400", "-1E+5", "9007199254740993"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**11), 10**11, places=3).map(lambda d: f"{d:f}"),
)
DATES = st.one_of(
    st.dates().map(str), st.sampled_from(["2026-02-30", "2026-3-1", "0000-01-01", "20260301", ""])
)
CLOCKS = st.one_of(
    st.times().map(str),
    st.sampled_from(["24:00:00", "11:40:60", "11:40", "00:00:00.123456789", "23:59:59.9999999"]),
)
ZONES = st.sampled_from(["Z", "+01:00", "-18:00", "+18:01", "+0530", "+05", " Z", "", "z", "+1"])
TIMES = st.builds("{}{}{}{}".format, DATES, st.sampled_from(["T", " ", "t"]), CLOCKS, ZONES)
STRINGS = st.one_of(st.text(max_size=5), DATES, TIMES, NUMBERS)
TEXTS = st.one_of(
    STRINGS.map(json.dumps),
    STRINGS.map(lambda text: json.dumps(text, ensure_ascii=False)),
    NUMBERS,
    st.sampled_from(["null", "true", "false", "{}", "[]", '{"a": [1]}', '"\\ud800"', "NaN", "01"]),
)
NAMES = st.sampled_from(["sku", "price", "n", "tags", "v", "at", "é"])
NESTED = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(
            st.tuples(st.sampled_from(["sku", "price", "n", "tags", "v", "at", "é"]), inner)
        ).map(lambda pairs: "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"),
    ),
    max_leaves=8,
)
PRICES = st.sampled_from(["1.50", '"2"', "null", "1e2", "7.005", "x"])
ITEMS = st.builds(
    '{{"sku": {}, "price": {}, "n": {}, "tags": {}}}'.format,
    *(st.sampled_from(['"a"', "5", "null"]), PRICES.filter(lambda price: price != "x")),
    *(
        st.sampled_from(["1", "null", "1.0"]),
        st.sampled_from(["[]", "null", '["t", null]', "[[]]"]),
    ),
)
EXTRAS = st.builds(
    '{{"k": {{"v": {}, "at": {}}}, "l": null, "k": {{"more": {{"m": {}}}}}}}'.format,
    *(st.sampled_from(["1.5", "3.5e38"]), TIMES.map(json.dumps)),
    st.lists(DATES.map(json.dumps), max_size=2).map(lambda days: f"[{', '.join(days)}]"),
)
PARTS = st.one_of(
    NESTED, EXTRAS, st.lists(ITEMS, max_size=3).map(lambda items: f"[{', '.join(items)}]")
)
GOOD_TIME = st.datetimes(datetime(1, 1, 2), datetime(2026, 3, 1, 12)).map(  # noqa: DTZ001
    lambda t: f'"{t.isoformat()}Z"'
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from([*TYPES, "other", "Level"]), max_size=6))
    fields = [("id", '"a"'), ("at", draw(GOOD_TIME))] if draw(st.integers(0, 3)) else []
    fields += [(n, draw(PARTS if n in ("items", "extra") else TEXTS)) for n in names]
    text = "{" + ", ".join(f'"{name}": {value}' for name, value in fields) + "}"
    return draw(st.sampled_from(["{}", "{}", "{}", " {} ", "{}{{}}", "{}]"])).format(text).encode()


RULES = (
    RECORD,
    replace(RECORD, event_id=(), unknown_fields="rescue"),
    replace(RECORD, event_id=("site", "level", "part"), unknown_fields="quarantine"),
    replace(RECORD, event_id=("at", "day"), event_time=EventTime("big", "epoch_millis")),
    replace(RECORD, event_id=("at", "seen")),
    replace(RECORD, event_time=EventTime("level", "epoch_seconds")),
    replace(RECORD, event_id=("value",), event_time=EventTime("site")),
    replace(RECORD, event_time=EventTime("at", "yyyy-MM-dd'T'HH:mm:ss", "Europe/Berlin")),
    replace(RECORD, event_id=("wide", "seen"), event_time=EventTime("at", "epoch_seconds")),
    replace(RECORD, event_id=("seen",), event_time=EventTime("seen", "epoch_nanos")),
    replace(
        RECORD, event_id=("at",), event_time=EventTime("at", "iso", "Asia/Tokyo", "quarantine")
    ),
)


@pytest.mark.slow
@settings(max_examples=2000 if IN_FULL else 150)
@given(st.sampled_from(RULES), st.lists(documents(), min_size=1, max_size=12))
def test_generated_records_are_decoded_as_by_the_validator(
    record: Record, values: list[bytes | None]
) -> None:
    assert decoded(record, values) == decoded(record, values, all_validated=True)


FLAT = tuple(replace(rule, schema=rule.schema[:-2]) for rule in RULES)
"""``RULES`` without nested types, which CSV cannot have."""
CELLS = st.one_of(STRINGS, st.sampled_from(["true", "T", " 7 ", "+5", "1.5", "", "1e400", "NaN"]))
LINES = st.dictionaries(st.sampled_from([*TYPES, "other"]), CELLS, max_size=6)


@pytest.mark.slow
@settings(max_examples=2000 if IN_FULL else 150)
@given(st.sampled_from(FLAT), st.lists(LINES, min_size=1, max_size=12), GOOD_TIME)
def test_cells_are_decoded_as_by_the_validator(
    record: Record, lines: list[dict[str, str]], time: str
) -> None:
    head = {"id": "a", "at": json.loads(time)}
    values: list[bytes | None] = [json.dumps(head | line).encode() for line in lines]
    values += [None, b'{"id": "a", "level": 7}', b'{"site": {}}']
    rows = decoded(record, values, format="csv")
    # As text: NaN does not equal itself.
    assert repr(rows) == repr(decoded(record, values, all_validated=True, format="csv"))


@pytest.mark.parametrize("length", [4_300, 4_301, 4_990, 6_000])
def test_a_cell_with_an_endless_exponent_is_of_the_wrong_type(length: int) -> None:
    """Python converts no more than 4,300 digits to an int. The error would end every driver."""
    line = {"id": "a", "at": "2026-03-01T11:40:00Z", "value": f"1e{'9' * length}"}
    values: list[bytes | None] = [json.dumps(line).encode()]
    rows = decoded(FLAT[0], values, format="csv")
    assert [(row["reason"], row["reason_column"]) for row in rows] == [("wrong_type", "value")]
    assert rows == decoded(FLAT[0], values, all_validated=True, format="csv")


@pytest.mark.parametrize("record", RULES)
def test_hostile_lines_are_decoded_as_by_the_validator(record: Record) -> None:
    values: list[bytes | None] = [line.value(n) for n, line in enumerate(HOSTILE)]
    values = [v for v in values if len(v or b"") < 1 << 20] + [None, b"", b" ", b"\x80"]
    assert decoded(record, values) == decoded(record, values, all_validated=True)


_CLOCK = "2026-03-01T11:40:00"
PLAIN: dict[str, list[object]] = {
    "seen": [
        *(f"{_CLOCK}.{'123456789'[:digits]}Z" for digits in range(10)),
        *(
            f"{_CLOCK}{sign}{rest}"
            for sign in "+-"
            for rest in ("18:00", "18:01", "01-00", "01:60")
        ),
        *(f"{_CLOCK}{rest}" for rest in ("+1:000", ".1234Z", ".12.4Z", "-0100Z", "+01:0Z", "Z")),
        *(
            f"2026-{day}T00:00:00Z"
            for day in ("02-28", "02-29", "00-01", "13-01", "01-00", "01-32")
        ),
        *(f"2026-03-01T{clock}Z" for clock in ("23:59:59", "24:00:00", "23:60:00", "23:59:60")),
        *("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-02-29T00:00:00Z"),
        *(
            "2026-03-01T11:40:0/Z",
            "2026-03-01T11:40:0:Z",
            "2026/03-01T11:40:00Z",
            "0000-01-01T00:00:00Z",
        ),
    ],
    "share": [3.4028235e38, 3.4028236e38, -3.5e38, 16777217, 0.1],
    "day": ["2026-02-28", "2026-02-29", "2026-3-001", "2026-03-01T", "0000-01-01"],
}


@pytest.mark.parametrize("name", PLAIN)
def test_values_at_the_edge_are_decoded_as_by_the_validator(name: str) -> None:
    head = '{"id": "a", "at": "2026-03-01T11:40:00Z"'
    texts = map(json.dumps, PLAIN[name])
    values: list[bytes | None] = [f'{head}, "{name}": {text}}}'.encode() for text in texts]
    rows = decoded(RECORD, values)
    assert rows == decoded(RECORD, values, all_validated=True)
    assert {row["reason"] for row in rows} == {None, "wrong_type"}


@pytest.mark.parametrize(
    ("field", "column", "detail"),
    [
        ('"items": [{}, null, {"price": "x"}]', "items", "items[2].price is not of type decimal(6"),
        ('"items": [{"tags": ["a", {}]}]', "items", "items[0].tags[1] is not of type string: {}"),
        ('"items": {}', "items", "items is not of type array<"),
        ('"items": [[]]', "items", "items[0] is not of type struct<"),
        ('"extra": {"k": {"at": "noon"}}', "extra", "extra['k'].at is not ISO 8601"),
        (
            '"extra": {"k": {"more": {"m": ["x"]}}}',
            "extra",
            "extra['k'].more['m'][0] is not a date",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_path(field: str, column: str, detail: str) -> None:
    head = '{"id": "a", "at": "2026-03-01T11:40:00Z"'
    (row,) = decoded(RECORD, [f"{head}, {field}}}".encode()])
    assert (row["reason"], row["reason_column"]) == ("wrong_type", column)
    assert row["reason_detail"].startswith(detail)


def test_nested_values_of_a_block_stay_with_their_rows() -> None:
    extras = ['{"a": {"v": 1}, "b": null}', "null", "{}", '{"c": {"more": {"d": ["2026-03-01"]}}}']
    extras += ['{"e": {"v": 1e39}}', '{"\\ud800": {"v": 2}}', '{"f": {"more": {"g": null}}}']
    lists = ['[{"n": 1}, {"n": 2}]', "[]", "null", '[{"n": 3.5}]', '[null, {"tags": ["t", null]}]']
    head = '{"id": "a", "at": "2026-03-01T11:40:00Z"'
    values: list[bytes | None] = [
        f'{head}, "extra": {extra}, "items": {items}}}'.encode()
        for extra in extras
        for items in lists
    ]
    rows = decoded(RECORD, values)
    assert rows == decoded(RECORD, values, all_validated=True)
    reasons = [row["reason_column"] for row in rows]
    assert reasons == [
        "items" if "3.5" in text else "extra" if "e39" in text else None
        for text in (str(value) for value in values)
    ]


def test_nested_values_are_typed_at_every_depth() -> None:
    text = b"""{"id": "a", "at": "2026-03-01T11:40:00Z",
        "items": [{"sku": 5, "price": "1.005", "other": 1}, {}, null],
        "extra": {"k": {"v": 1, "at": "2026-03-01T11:40:00+01:00",
                        "more": {"m": [], "n": null}}}}"""
    (row,) = decoded(RECORD, [text.replace(b"\n", b"")])
    nothing = {"sku": None, "price": None, "n": None, "tags": None}
    assert row["record"]["items"] == [
        nothing | {"sku": "5", "price": Decimal("1.01")},
        nothing,
        None,
    ]
    at = datetime(2026, 3, 1, 10, 40, tzinfo=UTC)
    more: list[tuple[str, list[object] | None]] = [("m", []), ("n", None)]
    assert row["record"]["extra"] == [("k", {"v": 1.0, "at": at, "more": more})]


@pytest.mark.slow
def test_rows_do_not_depend_on_their_block() -> None:
    values: list[bytes | None] = [line.value(n) for n, line in enumerate(HOSTILE)]
    values = [v for v in values if len(v or b"") < 1 << 20]
    together = decoded(RECORD, values)
    alone = [decoded(RECORD, [value])[0] | {"offset": n} for n, value in enumerate(values)]
    assert together == alone


@pytest.mark.parametrize("name", [*TYPES, "other"])
@pytest.mark.parametrize("text", [b'"\x80"', b'["\x80"]', b'{"a": "\x80"}', b'{"\x80": 1}'])
def test_what_is_not_utf_8_is_unparsable_in_any_column(name: str, text: bytes) -> None:
    good = b'{"id": "a", "at": "2026-03-01T11:40:00Z"}'
    bad = b'{"id": "a", "at": "2026-03-01T11:40:00Z", "%b": %b}' % (name.encode(), text)
    rows = decoded(RECORD, [good, bad, good])
    assert [row["reason"] for row in rows] == [None, "unparsable", None]


def test_a_zero_has_no_sign_in_an_id() -> None:
    record = replace(RECORD, event_id=("value",), unknown_fields="rescue")
    head = '"at": "2026-03-01T11:40:00Z", "value": '
    numbers = ("-0", "0", "-0.000", '"-0.00"')
    values: list[bytes | None] = [f"{{{head}{number}}}".encode() for number in numbers]
    values += [f'{{{head}{number}, "other": 1}}'.encode() for number in numbers]
    assert {row["event_id"] for row in decoded(record, values)} == {"0.00"}


@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_event_time_in_an_id_is_an_instant_by_its_own_rule(format: RecordFormat) -> None:
    rule = EventTime("at", "d/M/yyyy HH:mm", "Europe/Berlin")
    record = replace(FLAT[0], event_id=("at", "id"), event_time=rule)
    times = ("01/03/2026 12:00", "1/3/2026 12:00", "2026-03-01T11:00:00Z")
    values: list[bytes | None] = [f'{{"id": "a", "at": "{time}"}}'.encode() for time in times]
    rows = decoded(record, values, format=format)
    assert rows == decoded(record, values, all_validated=True, format=format)
    assert [row["event_id"] for row in rows] == ['["2026-03-01 11:00:00","a"]'] * 2 + [None]
    assert [row["reason"] for row in rows] == [None, None, "missing_id"]


def test_a_time_in_the_future_is_kept_with_its_reason() -> None:
    late = (ARRIVED + timedelta(hours=1, microseconds=1)).isoformat()
    (row,) = decoded(RECORD, [f'{{"id": "a", "at": "{late}", "level": "x"}}'.encode()])
    assert (row["reason"], row["reason_column"], row["reason_detail"]) == ("future", None, None)
    assert row["event_time"] == ARRIVED + timedelta(hours=1, microseconds=1)


def test_only_texts_that_may_exceed_a_limit_are_doubtful() -> None:
    deep, digits = b"[" * 501 + b"]" * 501, b"7" * 5001
    texts = [
        b"{}",
        b"\xff",
        b"x" * 4000,
        deep,
        digits,
        b"x" * 50_001,
        None,
        b'"' + b"[" * 500 + b'"',
    ]
    assert doubtful(pa.array(texts, pa.binary())) == [1, 3, 4, 5]


def test_nested_values_of_parquet_arrive(tmp_path: Path) -> None:
    sold = datetime(2026, 3, 1, 11, 0, 0, 123456, tzinfo=UTC)
    items = [{"sku": "a", "price": Decimal("1.50"), "n": None, "tags": ["t", None]}, None]
    more = [("m", [date(2026, 3, 1)])]
    extra = [("k", {"v": 0.5, "at": sold, "more": more}), ("n", None)]
    shown = Decoder(RECORD, "json").decode(block([b"{}"], "json")).schema.field("record").type
    fields = ("id", "at", "items", "extra")
    schema = pa.schema([shown.field(name) for name in fields])
    rows = [dict(zip(fields, ("a", ARRIVED, items, extra), strict=True))]
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet")
    file = LoggedFile(1, "a.parquet", (tmp_path / "a.parquet").stat().st_size, ARRIVED, ARRIVED)
    source = FilesSource(str(tmp_path), "parquet")
    (part,) = parts_of_files(Storage(str(tmp_path)), source, [file])
    (row,) = Decoder(RECORD, "json").decode(next(part.blocks())).to_pylist()
    assert row["reason"] is None
    assert {name: row["record"][name] for name in fields} == rows[0]


def test_ids_with_half_of_a_surrogate_pair_are_not_one_id() -> None:
    at = '"at": "2026-03-01T11:40:00Z"'
    ids = [r"\ud800", r"\udc00", r"a\udc00b", "?", r"\ud83d\ude00"]
    values: list[bytes | None] = [f'{{"id": "{each}", {at}}}'.encode() for each in ids]
    decoded = Decoder(RECORD, "json").decode(block(values, "json"))
    assert decoded["event_id"].to_pylist() == [None, None, None, "?", "\U0001f600"]
    assert decoded["reason"].to_pylist() == ["missing_id"] * 3 + [None] * 2
