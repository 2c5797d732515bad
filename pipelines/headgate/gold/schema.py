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
    columns = [(c.name, c.type) for c in (*table.by, *table.columns)]
    measures = [(m.name, m.type) for m in table.measures]
    by = len(table.by)
    own = [*columns[:by], *measures, *columns[by:]]
    in_order = [*columns_of(table).items(), *own, *STATUS_COLUMNS.items()]
    return struct_type(", ".join(f"`{name}` {type_}" for name, type_ in in_order))


def time_column(table: GoldTable) -> str:
    """The column that gold's files have bounds of."""
    return next(iter(begin_of(table)), "updated_at")


def state_field(table: GoldTable) -> StructField:
    """What an open row is folded on from, a struct for each measure; null once it is final."""
    state = Struct.of({m.name: state_type(m) for m in table.measures})
    return struct_type(f"{STATE} {state}")[STATE]


def late_type(table: GoldTable, silver: StructType) -> StructType:
    """A silver row, the result it came too late for, by how many seconds, and why."""
    columns = {**columns_of(table), **WHY_LATE}
    late = struct_type(", ".join(f"`{name}` {type_}" for name, type_ in columns.items()))
    return StructType([*silver.fields, *late.fields])
