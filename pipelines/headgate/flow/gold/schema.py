"""The columns of gold and late tables."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from headgate.declaration.contracts.operator import begin_of, columns_of, gold_columns
from headgate.declaration.model import GoldTable
from headgate.declaration.names import WHY_LATE
from headgate.declaration.types import Struct
from headgate.flow.gold.states import state_type
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.frames import struct_type


def gold_type(table: GoldTable) -> StructType:
    """The columns of the result, keys, measures and columns, then the status of the row."""
    return struct_type(gold_columns(table))


def time_column(table: GoldTable) -> str:
    """The column for which gold's files have bounds."""
    return next(iter(begin_of(table)), "updated_at")


def state_field(table: GoldTable) -> StructField:
    """The state of an open row: a struct for each measure, null once the row is final."""
    state = Struct.of({m.name: state_type(m) for m in table.measures})
    return struct_type({STATE: state})[STATE]


def late_type(table: GoldTable, silver: StructType) -> StructType:
    """The columns of a silver row and of the result that it is late for, the seconds by which it is
    late, the reason, and the number of the replay that has folded it."""
    late = struct_type({**columns_of(table), **WHY_LATE})
    return StructType([*silver.fields, *late.fields])
