"""The pairs of an interval join, and the rows that it keeps without a partner.

Rows are joined by their key and by a cell of time, so that a key with many rows is compared only
with rows that are close: each row of one side is in one cell, and each row of the other side in all
cells that its bounds reach.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.flow.gold.append.operator import ID, TIME
from headgate.flow.gold.operators.join import Join
from headgate.lake.tables.frames import micros

_LEAST = timedelta(seconds=1)
"""The least length of a cell. A row of the right side is in at most three cells."""


def joined(join: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """The results, as ``AppendOperator.results`` returns them."""
    one, other = _side(join, join.left, left, 0), _side(join, join.right, right, 1)
    how = "inner" if join.kind == "inner" else "left_outer"
    pairs = one.join(_in_cells(join, other), _meets(join), how)
    found = pairs.select(_decided(join), _id(), F.col(join.left), F.col(join.right))
    if join.kind != "full":
        return found
    matched = one.join(_in_cells(join, other), _meets(join), "inner").select("_id1")
    alone = other.join(matched, "_id1", "left_anti")
    missing = left.schema[join.left].dataType
    kept = alone.select(
        (F.col("_time1") + F.lit(micros(join.before))).alias(TIME),
        F.col("_id1").alias(ID),
        F.lit(None).cast(missing).alias(join.left),
        F.col(join.right),
    )
    return found.unionByName(kept)


def _side(join: Join, name: str, rows: DataFrame, side: int) -> DataFrame:
    """The rows of one side, with ``_time``, ``_id``, ``_cell`` and the key under names of their
    own. The last step of Spark's plan then has no column twice."""
    keys = (
        F.col(f"`{name}`.`{on[side]}`").alias(f"_key{side}_{n}") for n, on in enumerate(join.on)
    )
    time = F.col(TIME).alias(f"_time{side}")
    cell = _cell(join, F.col(TIME)).alias(f"_cell{side}")
    return rows.select(time, F.col(ID).alias(f"_id{side}"), cell, *keys, F.col(f"`{name}`"))


def _length(join: Join) -> int:
    return micros(max(join.before + join.after, _LEAST))


def _cell(join: Join, time: Column) -> Column:
    return F.floor(time / F.lit(_length(join))).cast("bigint")


def _in_cells(join: Join, right: DataFrame) -> DataFrame:
    """The rows of the right side, once for each cell that has a possible partner."""
    time = F.col("_time1")
    first = _cell(join, time - F.lit(micros(join.after)))
    last = _cell(join, time + F.lit(micros(join.before)))
    return right.withColumn("_cell1", F.explode(F.sequence(first, last)))


def _meets(join: Join) -> Column:
    meets = F.col("_cell0") == F.col("_cell1")
    for n in range(len(join.on)):
        meets &= F.col(f"_key0_{n}") == F.col(f"_key1_{n}")
    apart = F.col("_time1") - F.col("_time0")
    meets &= apart.between(-micros(join.before), micros(join.after))
    return meets if join.where is None else meets & F.expr(join.where)


def _decided(join: Join) -> Column:
    """The time of the later row of a pair. A left row without a partner is decided when the last
    possible one would have come."""
    alone = F.col("_time0") + F.lit(micros(join.after))
    pair = F.greatest("_time0", "_time1")
    return F.when(F.col("_id1").isNull(), alone).otherwise(pair).alias(TIME)


def _id() -> Column:
    return F.concat_ws(" ", "_id0", "_id1").alias(ID)
