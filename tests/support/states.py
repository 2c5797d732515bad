"""States of measures in Spark, outside of a gold table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import Measure
from headgate.declaration.types import Struct
from headgate.flow.gold.schema import fold_of, merged_sql, state_type, value_sql


def states(rows: DataFrame, measures: Sequence[Measure], *by: str) -> DataFrame:
    """The state ``s`` of each group of rows: a struct for each measure."""
    return rows.groupBy(*by).agg(F.struct(*map(_partial, measures)).alias("s"))


def joined(found: DataFrame, measures: Sequence[Measure], *by: str) -> DataFrame:
    """The state ``s`` over the states of each group, which are merged in the order of ``s``."""
    each = (f"'{of.name}', {both(of, f'p.{of.name}', f'q.{of.name}')}" for of in measures)
    null = f"cast(null as {Struct.of({of.name: state_type(of) for of in measures})})"
    step = f"(p, q) -> case when p is null then q else named_struct({', '.join(each)}) end"
    return found.groupBy(*by).agg(F.expr(f"aggregate(collect_list(s), {null}, {step})").alias("s"))


def values(found: DataFrame, measures: Sequence[Measure], *by: str) -> DataFrame:
    return found.select(
        *by, *(F.expr(value_sql(of, f"s.{of.name}")).alias(of.name) for of in measures)
    )


def both(of: Measure, old: str, new: str) -> str:
    """The SQL of two states, merged."""
    each = (
        f"'{name}', cast({merged_sql(of, name, old, new)} as {field.type})"
        for name, field in fold_of(of).fields.items()
    )
    return f"named_struct({', '.join(each)})"


def _partial(of: Measure) -> Column:
    fields = fold_of(of).fields.items()
    each = (F.expr(field.partial).cast(str(field.type)).alias(name) for name, field in fields)
    return F.struct(*each).alias(of.name)
