"""What gold and late tables hold."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from headgate.declaration.model import GoldTable
from headgate.gold.states import state_type
from headgate.tables.data_file import FINAL, STATE
from headgate.tables.frames import struct_type


def gold_type(table: GoldTable) -> StructType:
    """What readers see: windows, keys, measures and columns; then how final a row is."""
    columns = [(c.name, c.type) for c in (*table.by, *table.columns)]
    measures = [(m.name, m.type) for m in table.measures]
    in_order = columns[: len(table.by)] + measures + columns[len(table.by) :]
    named = ", ".join(f"`{name}` {type_}" for name, type_ in in_order)
    return struct_type(
        f"window_start timestamp, window_end timestamp, {named}, {FINAL} boolean, revision int, "
        "updated_at timestamp"
    )


def state_field(table: GoldTable) -> StructField:
    """What an open row is folded on from, a struct for each measure; null once it is final."""
    state = ", ".join(f"`{m.name}`: {state_type(m)}" for m in table.measures)
    return struct_type(f"{STATE} struct<{state}>")[STATE]


def late_type(silver: StructType) -> StructType:
    """A silver row, the window it came too late for, by how many seconds, and why."""
    late = struct_type(
        "window_start timestamp, window_end timestamp, late_seconds double, reason string"
    )
    return StructType([*silver.fields, *late.fields])
