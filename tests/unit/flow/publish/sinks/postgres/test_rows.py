"""The rows and values of a mirror."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror
from headgate.flow.publish.sinks.writers import KEY, VersionDifference
from tests.support.postgres import Server, is_there
from tests.unit.flow.publish.sinks.postgres.conftest import PLAIN, gone, rows, sales, step, version

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")


@pytest.mark.slow
def test_changed_new_and_gone_rows(server: Server, mirror: PostgresMirror) -> None:
    assert mirror.held() is None
    mirror.apply(step(rows(("a", 1), ("b", 2), ("c", 3)), 4))
    assert sales(server) == [("a", 1), ("b", 2), ("c", 3)]
    assert mirror.held() == version(4)
    mirror.apply(step(rows(("b", 20), ("d", 4)), 7, 4, gone("a", "x")))
    assert sales(server) == [("b", 20), ("c", 3), ("d", 4)]
    assert mirror.held() == version(7)
    # Rows that may be unchanged are compared, so no row is written without need.
    before = server.ask("SELECT xmin::text FROM sales WHERE shop = 'c'")
    mirror.apply(
        VersionDifference(
            [rows(("c", 3), ("e", 5))], None, PLAIN, ("shop",), version(7), version(9)
        )
    )
    assert sales(server) == [("c", 3), ("e", 5)]
    assert server.ask("SELECT xmin::text FROM sales WHERE shop = 'c'") == before


_TEXTS = ["a'b\"c\\d\te\nf\r", "nul \x00 end", "\\N", "", "é漢🙂"]
_LARGEST = Decimal("9999999999999999999999999999.9999999999")
_REALS = [float("inf"), float("-inf"), 1e308, 5e-324, -0.0]
_BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
_TIMES = [datetime.min.replace(tzinfo=UTC), _BEFORE_1970, datetime.max.replace(tzinfo=UTC)]
_TIME = pa.timestamp("us", "UTC")
HOSTILE: tuple[tuple[str, Any, list[Any], str], ...] = (
    ("text", pa.string(), _TEXTS, "text"),
    ("big", pa.string(), ["x" * 10_000_000], "text"),
    ("money", pa.decimal128(38, 10), [_LARGEST, Decimal("-1E-10")], "numeric(38,10)"),
    ("whole", pa.decimal128(38, 0), [Decimal(10**38 - 1)], "numeric(38,0)"),
    ("real", pa.float64(), _REALS, "double precision"),
    ("single", pa.float32(), [1.5], "real"),
    ("flag", pa.bool_(), [True, False], "boolean"),
    ("tiny", pa.int8(), [-128], "smallint"),
    ("long", pa.int64(), [-(2**63), 2**63 - 1], "bigint"),
    ("raw", pa.binary(), [b"\x00\xff\\x", b""], "bytea"),
    ("day", pa.date32(), [date.min, date(1969, 12, 31), date.max], "date"),
    ("at", _TIME, _TIMES, "timestamp with time zone"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "type_", "values", "wanted"), HOSTILE, ids=[each[0] for each in HOSTILE]
)
def test_values_and_types(
    server: Server, mirror: PostgresMirror, name: str, type_: Any, values: list[Any], wanted: str
) -> None:
    """PostgreSQL has no NUL in text: the replacement character for unknown ones is written
    instead."""
    schema = pa.schema([(name, type_)])
    keys = pa.array([str(i).encode() for i in range(len(values) + 1)], pa.binary())
    table = pa.table({KEY: keys, name: pa.array([*values, None], type_)})
    mirror.apply(step(table, 1, schema=schema))
    ((found,),) = server.ask(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 'sales'::regclass AND attname = %s",
        name,
    )
    assert found == wanted
    there = [row[0] for row in server.ask(f'SELECT "{name}" FROM sales ORDER BY {KEY}')]
    there = [bytes(v) if isinstance(v, memoryview) else v for v in there]
    seen = [v.replace("\x00", "�") if isinstance(v, str) else v for v in values]
    assert there == [*seen, None]


@pytest.mark.slow
def test_times_that_python_does_not_have(server: Server, mirror: PostgresMirror) -> None:
    years = [-4711, -43, 0, 10_000, 200_000]
    micros = [_micros(year) for year in years] + [_micros(-100_000)]
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    at = pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
    keys = pa.array([str(i).encode() for i in range(len(micros))], pa.binary())
    mirror.apply(step(pa.table({KEY: keys, "at": at}), 1, schema=schema))
    found = [row[0] for row in server.ask(f"SELECT at::text FROM sales ORDER BY {KEY}")]
    assert [text.split(" ")[0] for text in found] == [
        "4712-01-01",
        "0044-01-01",
        "0001-01-01",
        "10000-01-01",
        "200000-01-01",
        "-infinity",
    ]
    assert [text.endswith("BC") for text in found] == [True, True, True, False, False, False]


def _micros(year: int) -> int:
    import numpy as np

    return int(
        np.datetime64(f"{year:05d}-01-01" if year < 0 else f"{year:04d}-01-01", "us").astype(
            np.int64
        )
    )


@pytest.mark.slow
def test_nested_values_are_documents(server: Server, mirror: PostgresMirror) -> None:
    schema = pa.schema([("tags", pa.list_(pa.string()))])
    texts = [r'["a", "nul \u0000", "not one: \\u0000", "\"", "NaN"]', "[]", None]
    keys = pa.array([b"1", b"2", b"3"], pa.binary())
    mirror.apply(step(pa.table({KEY: keys, "tags": texts}), 1, schema=schema))
    found = [row[0] for row in server.ask(f"SELECT tags FROM sales ORDER BY {KEY}")]
    assert found == [["a", "nul �", "not one: \\u0000", '"', "NaN"], [], None]
    assert server.ask("SELECT DISTINCT pg_typeof(tags)::text FROM sales") == [("jsonb",)]
