"""Which columns a column of a table is computed from, as the declaration says it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.declaration.contracts.operator import columns_of
from headgate.declaration.expressions.tokens import tokenize
from headgate.declaration.model import GoldTable, Measure, Record, SilverTable

How = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION", "FILTER", "GROUP_BY"]
"""A subtype of a transformation, in the words of OpenLineage's column lineage facet."""

EVENT_TIME = "_event_time"
"""The column of silver that decides to which windows a row belongs."""


@dataclass(frozen=True, order=True)
class Input:
    """A column of the upstream table, and how it is used."""

    column: str
    how: How


@dataclass(frozen=True)
class Columns:
    """``of`` has the inputs of each column. ``rows`` are the inputs that decide which rows there
    are."""

    of: Mapping[str, tuple[Input, ...]]
    rows: tuple[Input, ...]


def of_bronze(record: Record) -> Columns:
    """The fields of a record, from the fields of the source."""
    return Columns({c.name: (Input(c.in_record, "IDENTITY"),) for c in record.schema}, ())


def of_silver(table: SilverTable, record: Record) -> Columns:
    fields = record.types.keys()
    derived = {each.name: each.expression for each in table.columns}
    of: dict[str, tuple[Input, ...]] = {
        name: _computed(derived.get(name, name), fields) for name in table.types
    }
    of[EVENT_TIME] = (Input(record.event_time.column.partition(".")[0], "TRANSFORMATION"),)
    # The condition may read all columns of the table, also those that are dropped after it.
    rows = {
        Input(source.column, "FILTER")
        for name in _names(table.where, fields | derived.keys())
        for source in _computed(derived.get(name, name), fields)
    }
    return Columns(of, tuple(sorted(rows)))


def of_gold(table: GoldTable, silver: SilverTable) -> Columns:
    names = silver.types.keys()
    of: dict[str, tuple[Input, ...]] = {
        name: (Input(EVENT_TIME, "TRANSFORMATION"),) for name in columns_of(table)
    }
    of |= {key.name: _computed(key.expression, names) for key in table.by}
    of |= {measure.name: _aggregated(measure, names) for measure in table.measures}
    for column in table.columns:
        above = (source for name in _names(column.expression, of.keys()) for source in of[name])
        of[column.name] = _without_copies(
            Input(each.column, "TRANSFORMATION" if each.how == "IDENTITY" else each.how)
            for each in above
        )
    rows = [Input(name, "FILTER") for name in _names(table.where, names)]
    rows += [Input(name, "GROUP_BY") for key in table.by for name in _names(key.expression, names)]
    return Columns(of, _without_copies(rows))


def _aggregated(measure: Measure, names: Collection[str]) -> tuple[Input, ...]:
    read = (name for each in measure.arguments for name in _names(each.text, names))
    tested = (Input(name, "FILTER") for name in _names(measure.filter, names))
    return _without_copies((*(Input(name, "AGGREGATION") for name in read), *tested))


def _computed(expression: str, names: Collection[str]) -> tuple[Input, ...]:
    how: How = "IDENTITY" if expression in names else "TRANSFORMATION"
    return tuple(Input(name, how) for name in _names(expression, names))


def _names(expression: str | None, names: Collection[str]) -> tuple[str, ...]:
    """The ``names`` that an expression reads. No variable of a lambda has the name of a column."""
    if expression is None:
        return ()
    try:
        columns = sqlglot.parse_one(expression, dialect="spark").find_all(exp.Column)
        found = {column.parts[0].name for column in columns}
    except SqlglotError:  # Spark's grammar has more than that of sqlglot
        found = {token.text.strip("`") for token in tokenize(expression)}
    return tuple(sorted(found & {*names}))


def _without_copies(inputs: Iterable[Input]) -> tuple[Input, ...]:
    return tuple(sorted(set(inputs)))
