"""The columns of gold and late tables, and the states of measures as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headgate.declaration.contracts.measure import MEASURES, MeasureFold
from headgate.declaration.contracts.operator import begin_of, columns_of, gold_columns, key_of
from headgate.declaration.model import GoldTable, Measure
from headgate.declaration.names import STATUS_COLUMNS, WHY_LATE
from headgate.declaration.types import Struct
from headgate.lake.tables.data_file import FINAL, STATE, DataFile
from headgate.lake.tables.frames import TableRows, struct_type
from headgate.lake.tables.table import Table

_PLACE = re.compile(r"\{(old|new)(?:\.(\w+))?\}")


def fold_of(measure: Measure) -> MeasureFold:
    """How ``measure`` is folded."""
    return MEASURES[measure.function].fold(measure)


def merged_sql(measure: Measure, name: str, old: str, new: str) -> str:
    """The SQL that merges field ``name`` of two states addressed by ``old`` and ``new``."""

    def place(match: re.Match[str]) -> str:
        side = old if match[1] == "old" else new
        return f"{side}.`{match[2] or name}`"

    return _PLACE.sub(place, fold_of(measure).fields[name].merge)


def value_sql(measure: Measure, state: str) -> str:
    """The SQL of the measure's value over the state addressed by ``state``."""
    sql = re.sub(r"\{(\w+)\}", lambda m: f"{state}.`{m[1]}`", fold_of(measure).value)
    return f"cast({sql} as {measure.type})"


def state_type(measure: Measure) -> Struct:
    return Struct.of({name: field.type for name, field in fold_of(measure).fields.items()})


def states_type(measures: Sequence[Measure]) -> Struct:
    """The states of some measures."""
    return Struct.of({m.name: state_type(m) for m in measures})


def gold_type(table: GoldTable) -> StructType:
    """The columns of the result, keys, measures and columns, then the status of the row."""
    return struct_type(gold_columns(table))


def compared_columns(table: GoldTable) -> tuple[str, ...]:
    """The columns that say whether two rows of one key are the same."""
    left_out = {*key_of(table), *STATUS_COLUMNS}
    return tuple(name for name in gold_columns(table) if name not in left_out)


def time_column(table: GoldTable) -> str:
    """The column for which gold's files have bounds."""
    return next(iter(begin_of(table)), "updated_at")


def state_field(table: GoldTable) -> StructField:
    """The state of an open row: a struct for each measure, null once the row is final."""
    return struct_type({STATE: states_type(table.measures)})[STATE]


def declared_rows(spark: SparkSession, gold: Table, declared: GoldTable) -> TableRows:
    """Reads rows of a gold table with their states, with the columns that ``declared`` says: after
    a rollback, structs in the table may have more fields."""
    return TableRows(spark, gold, state_field(declared), declared=gold_type(declared))


def rows_of_both(read: TableRows, files: Sequence[DataFile]) -> DataFrame:
    """The rows of files of a gold table, final and open ones, with their states and ``final``."""
    final = read.of([file for file in files if file.is_final])
    opened = read.of([file for file in files if not file.is_final])
    sides = final.withColumn(FINAL, F.lit(True)), opened.withColumn(FINAL, F.lit(False))
    return sides[0].unionByName(sides[1])


def late_type(table: GoldTable, silver: StructType) -> StructType:
    """The columns of a silver row and of the result that it is late for, the seconds by which it is
    late, the reason, and the number of the replay that has folded it."""
    late = struct_type({**columns_of(table), **WHY_LATE})
    return StructType([*silver.fields, *late.fields])
