"""The rows of a join as of a time. Both sides are sorted together by key and time, so that the cost
does not depend on how many rows a key has."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.append.operator import ID, TIME
from headgate.flow.gold.operators.as_of import AsOf
from headgate.lake.tables.frames import micros


def matched(as_of: AsOf, left: DataFrame, right: DataFrame) -> DataFrame:
    """The results, as ``AppendOperator.results`` returns them."""
    both = _side(as_of, as_of.right, right, 0).unionByName(
        _side(as_of, as_of.left, left, 1), allowMissingColumns=True
    )
    # At the same time, rows of the right side come first: a left row sees them.
    order = [TIME, "_side", *(f"_of{name}" for name in SILVER_IDENTITY)]
    before = Window.partitionBy("_key").orderBy(*order)
    earlier = before.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    candidate = F.when(F.col("_side") == 0, F.struct(TIME, as_of.right))
    found = both.withColumn("_last", F.last(candidate, ignorenulls=True).over(earlier))
    # A row without a value in its key has no partner.
    is_known = F.col(f"_last.{TIME}") >= F.col(TIME) - F.lit(micros(as_of.within))
    last = F.when(is_known & F.col("_is_keyed"), F.col(f"_last.{as_of.right}"))
    rows = found.where("_side = 1")
    return rows.select(TIME, ID, F.col(f"`{as_of.left}`"), last.alias(as_of.right))


def _side(as_of: AsOf, name: str, rows: DataFrame, side: int) -> DataFrame:
    """The rows of one side: 0 for the right one, 1 for the left one."""
    keys = [F.col(f"`{name}`.`{on[1 - side]}`") for on in as_of.on]
    is_keyed = F.lit(True)
    for key in keys:
        is_keyed &= key.isNotNull()
    named = (key.alias(f"_{n}") for n, key in enumerate(keys))
    # Rows without a partner are spread over partitions, instead of all being in that of null.
    lone = F.when(~is_keyed, F.col(ID)).alias("_lone")
    place = (F.col(f"`{name}`.`{each}`").alias(f"_of{each}") for each in SILVER_IDENTITY)
    return rows.select(
        *(TIME, ID, F.struct(*named, lone).alias("_key"), is_keyed.alias("_is_keyed")),
        *(F.lit(side).alias("_side"), *place, F.col(f"`{name}`")),
    )
