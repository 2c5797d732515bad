"""Spark frames over a table's files, and selections of columns that are sent to the JVM once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from headgate.declaration.types import DataType
from headgate.lake.storage.globs import literal_pattern
from headgate.lake.tables.damage import require_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.table import Table
from headgate.machine import jvm


class Projection:
    """The same ``select`` for many batches. PySpark's ``select`` makes several JVM calls per column
    each time: a third of all calls of a small batch."""

    def __init__(self, *columns: Column | str) -> None:
        self._columns = columns
        self._seq: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """``frame.select(*columns)``."""
        if self._seq is None:
            self._seq = jvm.java_columns(frame, self._columns)
        return jvm.select(frame, self._seq)


def struct_type(columns: Mapping[str, DataType]) -> StructType:
    """The Spark type of rows with some columns; callers must not change it. Needs a Spark
    session."""
    return _parsed(", ".join(f"`{name}` {type_}" for name, type_ in columns.items()))


@lru_cache(maxsize=256)  # Spark parses in the JVM, and many tables have the same columns.
def _parsed(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    assert isinstance(parsed, StructType)
    return parsed


def row_type(table: Table) -> StructType:
    """The Spark type of a table's rows, from its log."""
    return StructType.fromJson(json.loads(table.schema.to_json()))


def struct_of(names: Iterable[str]) -> Column:
    """A struct of some columns."""
    return F.struct(*(F.col(f"`{name}`") for name in names))


def arrow_schema(type_: StructType) -> pa.Schema:
    """The Delta schema of a Spark type; times are UTC microseconds."""
    return to_arrow_schema(type_, timezone="UTC")


class TableRows:
    """Reads files that a table's log names, without listing folders or inferring schemas. The table
    must exist at the first read. ``unnamed`` are columns of the files that are not in the log, and
    ``declared`` has the types of columns that may have more fields in the log."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        *unnamed: StructField,
        declared: StructType | None = None,
    ) -> None:
        self._spark = spark
        self._table = table
        self._unnamed = unnamed
        self._declared = {field.name: field for field in declared.fields} if declared else {}
        self._known: tuple[str, StructType, DataFrameReader] | None = None

    def of(self, files: Sequence[DataFile]) -> DataFrame:
        """The rows of some files, without partition columns. Raises DamagedFileError."""
        _, stored, reader = self._as_stored()
        if not files:
            return self._spark.createDataFrame([], stored)
        storage = self._table.storage
        require_sound(storage, files)
        return reader.parquet(*(literal_pattern(storage.uri(f.path)) for f in files))

    def _as_stored(self) -> tuple[str, StructType, DataFrameReader]:
        """Computed again only if the columns change. While a driver runs, only the publication of a
        rebuild changes them."""
        shape = self._table.state.shape
        if self._known is None or self._known[0] != shape:
            left_out = self._table.partition_by
            held = (f for f in row_type(self._table).fields if f.name not in left_out)
            fields = [self._declared.get(f.name, f) for f in held]
            stored = StructType([*fields, *self._unnamed])
            self._known = shape, stored, self._spark.read.schema(stored)
        return self._known


def micros(duration: timedelta) -> int:
    """A duration in microseconds."""
    return duration // timedelta(microseconds=1)
