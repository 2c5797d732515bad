"""The results of an append operator that are decided between two times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import late_identity, operator_of
from headgate.declaration.model import GoldTable
from headgate.declaration.names import (
    RESCUED,
    RESULT_ID,
    RESULT_TIME,
    SILVER_COLUMNS,
    WARNINGS,
)
from headgate.flow.gold.append.inputs import Files, InputRows
from headgate.flow.gold.append.operator import ID, TIME, AppendOperator
from headgate.flow.gold.schema import gold_type
from headgate.lake.tables.frames import Projection
from headgate.lake.tables.spans import EVERYTHING, Span
from headgate.lake.tables.state import State

MOST_SENT = 1_000_000
"""Up to this many waiting rows are sent to every task. More are shuffled, with all other rows."""


class AppendResults:
    """Spans are times at which results are decided. The expressions are built once: building them
    for every batch costs more than a small batch."""

    def __init__(self, spark: SparkSession, declared: GoldTable, inputs: InputRows) -> None:
        self._spark, self._declared, self._inputs = spark, declared, inputs
        operator = operator_of(declared)
        assert isinstance(operator, AppendOperator)
        self._operator: AppendOperator[Any] = operator
        self.reach = operator.reach(declared.operator)
        computed: dict[str, Column] = {
            RESULT_TIME: F.timestamp_micros(TIME),
            RESULT_ID: F.col(ID),
            **{c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in declared.columns},
            "final": F.col(TIME) < F.col("_output"),
            "revision": F.lit(0),
            "updated_at": F.col("_now"),
        }
        # An expression may be a whole row of an input, with the columns that its type has.
        self._rows = {
            name: F.col(f"`{name}`").dropFields(*SILVER_COLUMNS, RESCUED, WARNINGS)
            for name in declared.inputs
        }
        names = gold_type(declared).fieldNames()
        self._columns = Projection(*(computed[name].alias(name) for name in names))

    def decided(
        self,
        gold: State,
        span: Span,
        late: pa.Table | None,
        now: datetime,
        output: int | None = None,
    ) -> DataFrame:
        """The rows of ``gold_type`` that are decided within a span, from silver and the late table
        as they are for a state of the gold table. ``late`` are late rows that the late table does
        not have yet. Rows from the time ``output`` on are open; with None, there are none."""
        read = self._read(span)
        waiting = self._waiting(read, gold.operation, late)
        return self.of(self._inputs.files_at(gold, [read]), waiting, span, now, output)

    def _read(self, span: Span) -> Span:
        """The event times of the rows that decide what the results within a span are."""
        first, last = span
        return max(first - self.reach, EVERYTHING[0]), last

    def of(
        self,
        files: Files,
        waiting: DataFrame | None,
        span: Span,
        now: datetime,
        output: int | None = None,
    ) -> DataFrame:
        """The rows of ``gold_type`` that are decided within a span, from the rows of some files
        without those that are ``waiting``. ``output`` as in ``decided``."""
        constants = F.broadcast(self._constants(span, now, output))
        rows = {
            name: each.crossJoin(constants).where(f"{TIME} between _read and _last")
            for name, each in self._inputs.included(files, waiting).items()
        }
        found = self._results(rows).crossJoin(constants)
        return self._columns.of(found.where(f"{TIME} between _first and _last"))

    def _results(self, rows: Mapping[str, DataFrame]) -> DataFrame:
        known = {name: each.select(TIME, ID, name) for name, each in rows.items()}
        return self._operator.results(self._declared.operator, known).withColumns(self._rows)

    def _waiting(self, read: Span, operation: int, late: pa.Table | None) -> DataFrame | None:
        files = self._inputs.late_files([read])
        found = self._inputs.waiting(files, operation) if files else None
        count = sum(file.rows for file in files) + (0 if late is None else len(late))
        if late is not None and len(late):
            more = self._spark.createDataFrame(late.select([*late_identity(self._declared)]))
            found = more if found is None else found.unionByName(more)
        return found if found is None or count > MOST_SENT else F.broadcast(found)

    def _constants(self, span: Span, now: datetime, output: int | None) -> DataFrame:
        """One row with the values that change with every step. With literals that change, Spark
        would compile the query again each time."""
        first, last = span
        row = {
            "_now": pa.array([now], pa.timestamp("us", "UTC")),
            "_read": pa.array([self._read(span)[0]], pa.int64()),
            "_first": pa.array([first], pa.int64()),
            "_last": pa.array([last], pa.int64()),
            "_output": pa.array([last + 1 if output is None else output], pa.int64()),
        }
        return self._spark.createDataFrame(pa.table(row))
