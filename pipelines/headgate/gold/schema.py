"""What gold and late tables hold."""

from __future__ import annotations

from pyspark.sql.types import StructType

from headgate.gold.measures import state_type
from headgate.spec.model import GoldTable
from headgate.tables.data_file import FINAL
from headgate.tables.frames import struct_type


def gold_type(table: GoldTable) -> StructType:
    """Windows, keys, measures and columns; then how final a row is. ``_state`` is what an open
    row is folded on from, null once the row is final."""
    state = ", ".join(f"`{m.name}`: {state_type(m)}" for m in table.measures)
    columns = [(c.name, c.type) for c in (*table.by, *table.columns)]
    measures = [(m.name, m.type) for m in table.measures]
    in_order = columns[: len(table.by)] + measures + columns[len(table.by) :]
    named = ", ".join(f"`{name}` {type_}" for name, type_ in in_order)
    return struct_type(
        f"window_start timestamp, window_end timestamp, {named}, {FINAL} boolean, revision int, "
        f"updated_at timestamp, _state struct<{state}>"
    )


def late_type(silver: StructType) -> StructType:
    """A silver row, the window it came too late for, by how many seconds, and why."""
    late = struct_type(
        "window_start timestamp, window_end timestamp, late_seconds double, reason string"
    )
    return StructType([*silver.fields, *late.fields])
