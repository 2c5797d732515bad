"""Finds the rows of a version that break its rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.names import STATUS_COLUMNS
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.versions import breaking
from headgate.gates.documents import BrokenRow
from headgate.gates.releases import MOST_ROWS, ROW
from headgate.tables.row_hashes import comparable, hashes, is_floating, rounded

_DIGEST, _KEY, _OLD = "_digest", "_key", "_old"


@dataclass(frozen=True)
class BrokenRows:
    """The first ``rows`` that break rules, with the names of their ``columns``. ``digests`` are
    those of all rows that break a rule, by its id; empty if there are more than ``MOST_ROWS``."""

    digests: Mapping[str, Sequence[str]]
    columns: tuple[str, ...] = ()
    rows: tuple[BrokenRow, ...] = ()


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
    old = visible.select(_struct(key).alias(_KEY), _texts(visible, names).alias(_OLD))
    first = broken.orderBy(*(F.col(f"`{name}`") for name in key)).limit(MOST_ROWS + 1)
    found = (
        first.select(
            _struct(key).alias(_KEY),
            _texts(version, names).alias("row"),
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
        before = None if row[_OLD] is None else tuple(row[_OLD])
        rows.append(BrokenRow(row[_DIGEST], broke, tuple(row["row"]), before))
    is_whole = len(found) <= MOST_ROWS
    return BrokenRows(dict(digests) if is_whole else {}, tuple(names), tuple(rows))


def _struct(names: Sequence[str]) -> Column:
    return F.struct(*(F.col(f"`{name}`") for name in names))


def _texts(rows: DataFrame, names: Sequence[str]) -> Column:
    return F.struct(*(F.col(f"`{name}`").cast("string").alias(name) for name in names))


def _digest(rows: DataFrame, names: Sequence[str]) -> Column:
    """A digest of the values of a row, without its status: a row that becomes final is the same."""
    types = {field.name: field.dataType for field in rows.schema}
    values = [comparable(F.col(f"`{name}`"), types[name]) for name in names]
    values = [
        rounded(value) if is_floating(types[name]) else value
        for name, value in zip(names, values, strict=True)
    ]
    return F.concat(F.lit(ROW), *(F.hex(each) for each in hashes(values)))
