"""Measures over a window that slides from row to row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.expressions.tokens import closing, tokenize
from headgate.declaration.model import Measure
from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.append.operator import ID, TIME
from headgate.flow.gold.operators.over import Over
from headgate.flow.gold.schema import fold_of, value_sql
from headgate.lake.tables.frames import micros

_AGGREGATES = frozenset(
    ("sum", "count", "count_if", "avg", "var_pop", "min", "max", "bool_and", "bool_or")
) | {"collect_set"}
"""The aggregates of Spark of which the states of measures are made."""
_PLACES = 2**40
"""More than twice as many as the rows of a key that one step reads."""
OverEach = Callable[[str], str]
"""The SQL of a partial state over the rows that count, from its SQL over all rows of a group."""


def slid(over: Over, rows: DataFrame) -> DataFrame:
    """The results, as ``AppendOperator.results`` returns them."""
    by = [F.expr(f"cast(({each.expression}) as {each.type})").alias(each.name) for each in over.by]
    keyed = rows.select("*", F.struct(F.lit(0).alias("_"), *by).alias("_key"))
    states = _in_range(over, keyed) if over.rows is None else _in_rows(over, over.rows, keyed)
    values = (F.expr(value_sql(m, f"`_of_{m.name}`")).alias(m.name) for m in over.measures)
    return states.select(
        TIME, ID, F.col(f"`{over.table}`"), *(f"_key.`{each.name}`" for each in over.by), *values
    )


def _in_range(over: Over, keyed: DataFrame) -> DataFrame:
    """Each row with the states of measures over the rows that are near in time."""
    window = (
        f"over (partition by _key order by {TIME} "
        f"range between {micros(over.within)} preceding and current row)"
    )
    return keyed.select("*", *_states(over, lambda partial: over_each(partial, window)))


def _in_rows(over: Over, most: int, keyed: DataFrame) -> DataFrame:
    """Each row with the states of measures over the last rows that are near in time.

    Spark has no window that ends at a number of rows and at a time. So a state is that of the last
    rows if all of them are near, and otherwise that of the rows that are near, which are fewer. The
    second window would be long where many rows are near. So rows are divided into blocks of as many
    rows as count, and each block is put before the next one: both windows stay inside of two
    blocks.
    """
    place = ", ".join(f"`{over.table}`.{name}" for name in SILVER_IDENTITY)
    numbered = keyed.withColumn(
        "_row", F.expr(f"row_number() over (partition by _key order by {TIME}, {place})")
    ).withColumn("_own", F.expr(f"(_row - 1) div {most}"))
    # A time and a place as one number, since a range has one. It gives rows of one time an order.
    at = F.expr(f"cast({TIME} as decimal(38, 0)) * {_PLACES} + _row").cast("decimal(38, 0)")
    blocks = numbered.withColumn("_at", at).withColumn(
        "_block", F.explode(F.array("_own", F.col("_own") + 1))
    )
    window = "over (partition by _key, _block order by _at {} preceding and current row)"
    last = window.format(f"rows between {most}")
    # Rows of the earliest time are near, whatever their places are; an earlier time is not.
    near = window.format(f"range between {micros(over.within) * _PLACES + _PLACES // 2}")
    states = _states(
        over,
        lambda partial: (
            f"if(count(1) {near} > {most}, {over_each(partial, last)}, {over_each(partial, near)})"
        ),
    )
    return blocks.select("*", *states).where("_block = _own")


def _states(over: Over, over_rows: OverEach) -> Iterator[Column]:
    for measure in over.measures:
        yield _state(measure, over_rows).alias(f"_of_{measure.name}")


def _state(measure: Measure, over_rows: OverEach) -> Column:
    fields = fold_of(measure).fields.items()
    return F.struct(
        *(
            F.expr(over_rows(field.partial)).cast(str(field.type)).alias(name)
            for name, field in fields
        )
    )


def over_each(partial: str, window: str) -> str:
    """The partial state of a measure with the window behind each aggregate."""
    ends = [0, *_ends(partial)]
    parts = [partial[begin:end] for begin, end in zip(ends, [*ends[1:], len(partial)], strict=True)]
    return f" {window}".join(parts)


def _ends(partial: str) -> Iterator[int]:
    """Where the calls of aggregates end. The arguments of one have no other."""
    tokens = tokenize(partial)
    at = 0
    while at < len(tokens) - 1:
        is_call = tokens[at].lower in _AGGREGATES and tokens[at + 1].text == "("
        if is_call and (end := closing(tokens, at + 1)) is not None:
            yield tokens[end].end
            at = end
        at += 1
