"""From bronze rows to silver rows: frames in, frames out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.model import Record, SilverTable
from headgate.declaration.names import RESCUED, SILVER_COLUMNS
from headgate.declaration.types import STRING
from headgate.tables.frames import struct_type
from headgate.tables.projection import Projection

OUTCOMES = ("silver", "filtered", "quarantined", "duplicate")
"""The outcomes of a bronze row. Rows with another outcome than ``silver`` are only counted."""


def silver_type(table: SilverTable, record: Record) -> StructType:
    """The declared columns, then ours: event id, position, watermark at arrival and event time."""
    declared = {c.name: c.type for c in table.schema}
    rescued = {RESCUED: STRING} if record.unknown_fields == "rescue" else {}
    return struct_type({**declared, **SILVER_COLUMNS, **rescued})


class SilverTransform:
    """The rules of one silver table. Its expressions are built once: building them for every
    batch costs more than transforming a small one."""

    def __init__(self, table: SilverTable, record: Record) -> None:
        ours = _ours()
        self._flat = Projection(F.col("record.*"), *ours.values())
        derived = {c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in table.columns}
        kept = [*(c.name for c in record.schema), *ours]
        self._derived = Projection(
            *(
                derived.get(name, F.col(f"`{name}`")).alias(name)
                for name in dict.fromkeys([*kept, *derived])
            )
        )
        self._outcome = Projection("*", _outcome(table).alias("_outcome"))
        self._counts = [F.count(F.when(_is(o), 1)).alias(o) for o in OUTCOMES]
        self._is_silver = _is("silver")
        names = silver_type(table, record).fieldNames()
        self._columns = Projection(*(F.col(f"`{name}`") for name in names))

    def conformed(self, bronze: DataFrame, counts: Observation) -> DataFrame:
        """The rows of ``silver_type`` among some bronze rows. ``counts`` observes how many rows
        had each of ``OUTCOMES``, once the frame has been computed."""
        rows = self._outcome.of(self._derived.of(self._flat.of(bronze)))
        silver = rows.observe(counts, *self._counts).where(self._is_silver)
        return self._columns.of(silver)


def _outcome(table: SilverTable) -> Column:
    passes = F.expr(table.where) if table.where else F.lit(True)
    return (
        F.when(F.col("_duplicate"), _number("duplicate"))
        .when(F.col("_reason").isNotNull(), _number("quarantined"))
        .when(F.coalesce(passes, F.lit(False)), _number("silver"))
        .otherwise(_number("filtered"))
    )


def _number(outcome: str) -> Column:
    """Outcomes are numbers, because comparing numbers is faster than comparing names."""
    return F.lit(OUTCOMES.index(outcome))


def _is(outcome: str) -> Column:
    return F.col("_outcome") == _number(outcome)


def _ours() -> dict[str, Column]:
    taken = {
        "_event_id": "event_id",
        "_partition": "partition",
        "_offset": "offset",
        "_clock": "clock",
        "_event_time": "event_time",
        "_rescued": "rescued",
        "_duplicate": "duplicate",
        "_reason": "reason",
    }
    return {name: F.col(column).alias(name) for name, column in taken.items()}
