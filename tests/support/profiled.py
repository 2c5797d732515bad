"""Suites that are proposed from rows in DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from headgate.declaration.expectations import profiling
from headgate.declaration.expectations.written import suite_text
from headgate.declaration.types import DataType
from tests.support.suites import TYPES, suite_of

ARROW: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal(18,2)": pa.decimal128(18, 2),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "array<string>": pa.list_(pa.string()),
}
Rows = Sequence[Mapping[str, Any]]


class Profiled:
    """A table of DuckDB, and the suite that is proposed for it."""

    def __init__(self, rows: Rows, types: Mapping[str, DataType] = TYPES) -> None:
        arrays = {n: pa.array([r[n] for r in rows], ARROW[str(t)]) for n, t in types.items()}
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.register("t", pa.table(arrays))
        row = self._ask(profiling.statistics_sql("t", types))
        number, found = profiling.profile(row, types)
        if named := profiling.few(number, found):
            values = self._ask(profiling.values_sql("t", named))
            found = profiling.with_values(found, dict(zip(named, values, strict=True)))
        self.rules, self.left_out = profiling.proposed(number, found)
        self.suite = suite_of(suite_text(self.rules), types) if self.rules else None

    def broken(self) -> int:
        """How many rows break a rule of the suite. Its Spark SQL is translated for DuckDB."""
        conditions = [rule.condition for rule in self.suite.rules] if self.suite else ["true"]
        all_met = sqlglot.transpile(" and ".join(conditions), read="spark", write="duckdb")[0]
        (count,) = self._ask(f"SELECT count(*) FROM t WHERE NOT ({all_met})")
        return int(count)

    def _ask(self, sql: str) -> tuple[Any, ...]:
        found = self._connection.execute(sql).fetchone()
        assert found is not None
        return found
