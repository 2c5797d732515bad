"""Measures over a window that slides from row to row."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.expressions.tokens import closing, tokenize
from headgate.declaration.model import Measure
from headgate.flow.gold.append.operator import ID, TIME
from headgate.flow.gold.operators.over import Over
from headgate.flow.gold.schema import fold_of, value_sql
from headgate.lake.tables.frames import micros

_AGGREGATES = frozenset(
    ("sum", "count", "count_if", "avg", "var_pop", "min", "max", "bool_and", "bool_or")
) | {"collect_set"}
"""The aggregates of Spark of which the states of measures are made."""


def slid(over: Over, rows: DataFrame) -> DataFrame:
    """The results, as ``AppendOperator.results`` returns them."""
    window = (
        f"over (partition by _key order by {TIME} "
        f"range between {micros(over.range)} preceding and current row)"
    )
    by = [F.expr(f"cast(({each.expression}) as {each.type})").alias(each.name) for each in over.by]
    keyed = rows.select("*", F.struct(F.lit(0).alias("_"), *by).alias("_key"))
    states = (_state(measure, window).alias(f"_of_{measure.name}") for measure in over.measures)
    values = (F.expr(value_sql(m, f"`_of_{m.name}`")).alias(m.name) for m in over.measures)
    return keyed.select("*", *states).select(
        TIME, ID, F.col(f"`{over.table}`"), *(f"_key.`{each.name}`" for each in over.by), *values
    )


def _state(measure: Measure, window: str) -> Column:
    fields = fold_of(measure).fields.items()
    return F.struct(
        *(
            F.expr(over_each(field.partial, window)).cast(str(field.type)).alias(name)
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
