"""What gold and late tables hold."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from headgate.declaration.model import GoldTable
from headgate.declaration.names import STATUS_COLUMNS, WHY_LATE
from headgate.declaration.operators import begin_of, columns_of
from headgate.declaration.types import Struct
from headgate.gold.states import state_type
from headgate.tables.data_file import STATE
from headgate.tables.frames import struct_type


def gold_type(table: GoldTable) -> StructType:
    """What readers see: the result, keys, measures and columns; then how final a row is."""
    own = {c.name: c.type for c in table.schema}
    return struct_type({**columns_of(table), **own, **STATUS_COLUMNS})


def time_column(table: GoldTable) -> str:
    """The column that gold's files have bounds of."""
    return next(iter(begin_of(table)), "updated_at")


def state_field(table: GoldTable) -> StructField:
    """What an open row is folded on from, a struct for each measure; null once it is final."""
    state = Struct.of({m.name: state_type(m) for m in table.measures})
    return struct_type({STATE: state})[STATE]


def late_type(table: GoldTable, silver: StructType) -> StructType:
    """A silver row, the result it came too late for, by how many seconds, and why."""
    late = struct_type({**columns_of(table), **WHY_LATE})
    return StructType([*silver.fields, *late.fields])
