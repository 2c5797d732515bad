"""Finds the rows of a version that break its rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.names import STATUS_COLUMNS
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.versions import breaking
from headgate.flow.gates.releases import MOST_ROWS, ROW, token
from headgate.lake.tables.frames import TableRows, struct_of
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.row_changes import RowChange
from headgate.lake.tables.row_values import (
    comparable,
    is_floating,
    rounded,
    row_hashes,
    text_columns,
    values_of,
)
from headgate.lake.tables.table import Table

_DIGEST, _KEY, _OLD = "_digest", "_key", "_old"


@dataclass(frozen=True)
class BrokenRow:
    """A row of a held version that breaks rules, and the digest of its values."""

    digest: str
    row: RowChange


@dataclass(frozen=True)
class BrokenRows:
    """The first ``rows`` that break rules, with the names of the ``columns`` beside their key.
    ``digests`` are those of all rows that break a rule, by its id; empty if there are more than
    ``MOST_ROWS``."""

    digests: Mapping[str, Sequence[str]]
    columns: tuple[str, ...] = ()
    rows: tuple[BrokenRow, ...] = ()

    def without(self, rules: Iterable[Rule], accepted: Collection[str]) -> tuple[RowChange, ...]:
        """The rows that break some rules, as far as no release has ``accepted`` them for these."""
        meant = {rule.id: rule for rule in rules}

        def left(each: BrokenRow) -> RowChange:
            broken = (meant[id_] for id_ in each.row.rules if id_ in meant)
            open_ = (rule.id for rule in broken if token(rule, each.digest) not in accepted)
            return replace(each.row, rules=tuple(open_))

        return tuple(row for row in map(left, self.rows) if row.rules)


def broken_rows(
    version: DataFrame, visible: DataFrame, rules: Sequence[Rule], key: Sequence[str]
) -> BrokenRows:
    """The rows of a version that break one of some rules about rows. ``visible`` are the rows that
    readers see, ``key`` the columns that identify a row."""
    asked = [(rule, sql) for rule in rules if (sql := breaking(rule)) is not None]
    if not asked:
        return BrokenRows({})
    marks = {rule.id: f"_breaks_{number}" for number, (rule, _) in enumerate(asked)}
    columns = [F.col(f"`{name}`") for name in version.columns]
    broken = version.select(
        *columns, *(F.expr(sql).alias(marks[rule.id]) for rule, sql in asked)
    ).where(reduce(or_, (F.coalesce(F.col(mark), F.lit(False)) for mark in marks.values())))
    names = [name for name in version.columns if name not in STATUS_COLUMNS]
    old = visible.select(struct_of(key).alias(_KEY), text_columns(names).alias(_OLD))
    first = broken.orderBy(*(F.col(f"`{name}`") for name in key)).limit(MOST_ROWS + 1)
    found = (
        first.select(
            struct_of(key).alias(_KEY),
            text_columns(names).alias("row"),
            _digest(version, names).alias(_DIGEST),
            *marks.values(),
        )
        .join(old, _KEY, "left")
        .orderBy(_KEY)
        .collect()
    )
    digests = defaultdict[str, list[str]](list)
    rows = list[BrokenRow]()
    for row in found:
        broke = tuple(rule for rule, mark in marks.items() if row[mark])
        for rule in broke:
            digests[rule].append(row[_DIGEST])
        change = RowChange(values_of(row[_OLD]), values_of(row["row"]), broke)
        rows.append(BrokenRow(row[_DIGEST], change))
    is_whole = len(found) <= MOST_ROWS
    others = tuple(name for name in names if name not in key)
    return BrokenRows(dict(digests) if is_whole else {}, others, tuple(rows))


def _digest(rows: DataFrame, names: Sequence[str]) -> Column:
    """A digest of the values of a row, without its status: a row that becomes final is the same."""
    types = {field.name: field.dataType for field in rows.schema}
    values = [comparable(F.col(f"`{name}`"), types[name]) for name in names]
    values = [
        rounded(value) if is_floating(types[name]) else value
        for name, value in zip(names, values, strict=True)
    ]
    return F.concat(F.lit(ROW), *(F.hex(each) for each in row_hashes(values)))


def readers_rows(
    spark: SparkSession, rebuild: Table, version: DataFrame, key: Sequence[str]
) -> DataFrame:
    """The rows of the current table, with the columns of a ``version`` of its rebuild, and null in
    those that it does not have. None of them if it has another ``key``."""
    current = rebuild.with_log(rebuild.name)
    if not current.exists:
        return version.limit(0)
    current.refresh()
    rows = TableRows(spark, current).of(live_files(current.handle))
    held = {field.name: field.dataType for field in rows.schema}
    wanted = {field.name: field.dataType for field in version.schema}
    if any(held.get(name) != wanted[name] for name in key):
        return version.limit(0)
    return rows.select(
        *(
            F.col(f"`{name}`") if name in held else F.lit(None).cast(type_).alias(name)
            for name, type_ in wanted.items()
        )
    )
