"""What an append operator reads: the rows of its inputs that are included, and those that are late.

A row is late if its watermark at arrival is past its event time by more than the allowed lateness,
or if results beyond its event time were final before its step: because of a drain, or because its
source was idle. Late rows wait in the late table. All other rows, and those that a replay has
taken, are included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headgate.declaration.contracts.operator import late_identity
from headgate.declaration.model import GoldTable
from headgate.declaration.names import (
    INPUT,
    REPLAYED,
    SILVER_COLUMNS,
    SILVER_IDENTITY,
    WHY_LATE,
)
from headgate.declaration.types import STRING
from headgate.flow.gold.append.operator import ID, TIME
from headgate.flow.gold.late_replay import is_waiting
from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import TableRows, arrow_schema, micros, row_type, struct_type
from headgate.lake.tables.history import files_at
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import silver_read
from headgate.lake.tables.spans import Span
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

EVENT_TIME = "_event_time"
Files = Mapping[str, Sequence[DataFile]]
"""Files of each input, by its name."""


class InputRows:
    """The rows of the inputs of a gold table. ``silver`` has a reader of each input, by its name,
    ``late`` is the late table."""

    def __init__(
        self, spark: SparkSession, declared: GoldTable, silver: Mapping[str, Table], late: Table
    ) -> None:
        self.spark, self.declared, self.late = spark, declared, late
        self._silver, self._slack = silver, micros(declared.allowed_lateness)
        self._rows = {name: TableRows(spark, table) for name, table in self._silver.items()}

    def files_at(self, gold: State, spans: Sequence[Span]) -> Files:
        """The files that may have rows with event times in some spans, of the batches that the gold
        table has processed in a state. Raises LogGapError if another tool has rewritten silver."""
        ids = silver_read(self.declared, gold)
        return {
            name: files_at(table, ids[name], lambda at: overlapping_files(at, EVENT_TIME, spans))
            for name, table in self._silver.items()
        }

    def included(self, files: Files, waiting: DataFrame | None) -> dict[str, DataFrame]:
        """The rows of some files without those that are ``waiting``, by ``late_identity``, as
        ``AppendOperator.results`` takes them."""
        return {name: self._of(name, files.get(name, ()), waiting) for name in self._silver}

    def _of(self, name: str, files: Sequence[DataFile], waiting: DataFrame | None) -> DataFrame:
        rows = self._rows[name].of(files).withColumn(TIME, F.unix_micros(EVENT_TIME))
        if waiting is not None:
            own = waiting.where(F.col(INPUT) == name).select(*SILVER_IDENTITY)
            rows = rows.join(own, [*SILVER_IDENTITY], "left_anti")
        place = (F.lit(name), *(F.col(each).cast("string") for each in SILVER_IDENTITY))
        columns = [f"`{each}`" for each in row_type(self._silver[name]).fieldNames()]
        return rows.select(TIME, F.concat_ws("/", *place).alias(ID), F.struct(*columns).alias(name))

    def waiting(self, late: Sequence[DataFile], operation: int) -> DataFrame:
        """The ``late_identity`` of the rows of some files of the late table that no operation up to
        this one has included."""
        rows = TableRows(self.spark, self.late).of(late)
        return rows.where(is_waiting(operation)).select(*late_identity(self.declared))

    def late_files(self, spans: Sequence[Span]) -> tuple[DataFile, ...]:
        """The files of the late table that may have rows with event times in some spans."""
        self.late.refresh()
        return overlapping_files(self.late.handle, EVENT_TIME, spans)

    def late_rows(self, files: Files, before: GoldPayload) -> pa.Table:
        """The late ones among the rows of the files of a step, as rows of the late table.
        ``before`` is the payload of gold before the step. Reads their times alone, unless a row is
        late. Raises DamagedFileError."""
        schema = arrow_schema(row_type(self.late))
        output = before.final_through(self._slack)
        parts = [
            self._late_of(name, file, output, before.watermark).cast(schema)
            for name, each in files.items()
            for file in each
            if self._may_be_late(name, file, output)
        ]
        return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()

    def _may_be_late(self, name: str, file: DataFile, output: int | None) -> bool:
        storage = self._silver[name].storage
        return any(
            pc.any(_is_late(batch, self._slack, output)).as_py()
            for batch in sound_batches(storage, file, [EVENT_TIME, "_clock"])
        )

    def _late_of(
        self, name: str, file: DataFile, output: int | None, watermark: int | None
    ) -> pa.Table:
        silver = self._silver[name]
        schema = arrow_schema(row_type(silver))
        found = [
            pa.Table.from_batches([batch]).filter(_is_late(batch, self._slack, output))
            for batch in sound_batches(silver.storage, file, schema.names)
        ]
        rows = pa.concat_tables(
            [schema.empty_table(), *(each.select(schema.names).cast(schema) for each in found)]
        )
        clock = rows["_clock"].cast(pa.int64())
        if watermark is not None:
            # That of gold is ahead of the one of a source that was idle.
            clock = pc.max_element_wise(clock, watermark)
        behind = pc.subtract(clock, rows[EVENT_TIME].cast(pa.int64()))
        is_behind = pc.fill_null(pc.greater(behind, self._slack), False)
        own = [each for each in schema.names if each not in SILVER_COLUMNS]
        struct = pa.StructArray.from_arrays(
            [rows[each].combine_chunks() for each in own], fields=[schema.field(e) for e in own]
        )
        late = arrow_schema(row_type(self.late))
        columns = {
            INPUT: pa.repeat(name, len(rows)),
            **{each: rows[each] for each in SILVER_COLUMNS},
            "late_seconds": pc.divide(pc.cast(pc.subtract(behind, self._slack), pa.float64()), 1e6),
            "reason": pc.if_else(is_behind, "late", "closed"),
            REPLAYED: pa.nulls(len(rows), pa.int64()),
            name: struct,
        }
        missing = {each: pa.nulls(len(rows), late.field(each).type) for each in late.names}
        return pa.table({**missing, **columns}).select(late.names)


def late_type(table: GoldTable, silver: Mapping[str, StructType]) -> StructType:
    """The type of the rows of the late table (``contracts.operator.late_columns``)."""
    common = struct_type({INPUT: STRING, **SILVER_COLUMNS, **WHY_LATE})
    rows = [
        StructField(
            name, StructType([f for f in silver[name].fields if f.name not in SILVER_COLUMNS])
        )
        for name in table.inputs
    ]
    return StructType([*common.fields, *rows])


def _is_late(batch: pa.RecordBatch, slack: int, output: int | None) -> pa.Array:
    """``output`` is the time up to which results were final before the step."""
    time, clock = (batch.column(name).cast(pa.int64()) for name in (EVENT_TIME, "_clock"))
    late = pc.fill_null(pc.greater(clock, pc.add(time, slack)), False)
    return late if output is None else pc.or_(late, pc.less(time, output))
