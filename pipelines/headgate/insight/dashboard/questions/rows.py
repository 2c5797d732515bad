"""The rows of a gold table, by pages and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from headgate.insight.dashboard.errors import BadQuestionError, TooMuchError
from headgate.insight.dashboard.questions.cells import cells, is_number, text_of
from headgate.insight.dashboard.questions.selection import Selection, chosen_rows, span
from headgate.insight.dashboard.questions.sql import ALL, Condition, listed
from headgate.insight.dashboard.questions.view import GoldView, TableView
from headgate.insight.dashboard.reading.engine import Row
from headgate.insight.querying.sandbox import quoted

MOST_ROWS_OF_A_FILE = 5_000_000
MOST_ROWS_IN_ORDER = 1_000_000
"""A file with more rows is not sorted, because a sort needs all rows in memory."""
REACHABLE = 100_000
"""Rows that pages show at most. Each page sorts all rows before it, too."""


@dataclass(frozen=True, kw_only=True)
class PageQuestion:
    """A page of ``size`` rows; the first one is 0."""

    page: int = 0
    size: int = 50

    @property
    def part(self) -> tuple[int, int]:
        """LIMIT and OFFSET of the page; no row of it is after ``REACHABLE``."""
        offset = self.page * self.size
        return max(min(self.size, REACHABLE - offset), 0), offset


@dataclass(frozen=True)
class RowsQuestion(PageQuestion):
    """``sort`` is a column, or ``-column`` for descending order; without it, the newest results
    come first."""

    selection: Selection
    sort: str | None = None


def rows(view: GoldView, question: RowsQuestion) -> dict[str, Any]:
    """A page of rows. ``total`` is the number of rows that were chosen; ``numbers`` says which
    columns are numbers, and ``cells`` has texts, null for null."""
    chosen, begin = chosen_rows(view, question.selection), view.facts.begin
    order = _order(view, question.sort)
    columns, types = tuple(view.version.schema.names), view.types
    found, near = span(view), chosen
    if found is not None and begin is not None and not question.sort and chosen == ALL:
        # Without a selection, a page has rows of few windows. The condition on them skips files by
        # their statistics.
        first = found.from_newest(sum(question.part))
        near = Condition(f"{quoted(begin)} >= ?", (first,))
    page, cut = page_of(view, question, columns, near, order, _total(view, chosen))
    return {
        "columns": columns,
        "types": [types[name].lower() for name in columns],
        **page,
        "cells": [cells(row) for row in cut],
    }


def page_of(
    view: TableView,
    question: PageQuestion,
    columns: Sequence[str],
    chosen: Condition,
    order: str,
    total: int,
) -> tuple[dict[str, Any], Sequence[Row]]:
    """A page of the chosen rows, and its rows with texts that are cut."""
    types = view.types
    shown = ", ".join(f"{text_of(name, types[name])} AS {quoted(name)}" for name in columns)
    page = {
        "numbers": [is_number(types[name]) for name in columns],
        "total": total,
        "reachable": min(total, REACHABLE),
        "page": question.page,
        "size": question.size,
    }
    return page, view.ask(
        f"SELECT {shown} FROM (SELECT * FROM {view.called} WHERE {chosen.text} ORDER BY {order} "
        "LIMIT ? OFFSET ?)",
        [*chosen.parameters, *question.part],
        columns,
    )


def _total(view: GoldView, chosen: Condition) -> int:
    if chosen == ALL:
        return view.version.rows
    ((total,),) = view.ask(
        f"SELECT count(*) FROM gold WHERE {chosen.text}",
        chosen.parameters,
        (*view.facts.bounds, *view.facts.keys),
    )
    return int(total)


def write_file(view: GoldView, selection: Selection, form: str, file: BinaryIO) -> None:
    """Write the chosen rows as CSV or Parquet, whole and exact: nothing is cut or masked. The
    newest results come first if there are at most ``MOST_ROWS_IN_ORDER`` rows. Raises TooMuchError,
    BadQuestionError."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    if form not in ("csv", "parquet"):
        raise BadQuestionError(f"no file of the format {form[:20]!r}", remedy="csv or parquet")
    chosen = chosen_rows(view, selection)
    if (total := _total(view, chosen)) > MOST_ROWS_OF_A_FILE:
        raise TooMuchError(
            f"more than {MOST_ROWS_OF_A_FILE:,} rows",
            remedy="choose a shorter time or the rows of one key, or read the Delta table itself",
        )
    order = f"ORDER BY {_order(view, None)}" if total <= MOST_ROWS_IN_ORDER else ""
    columns = tuple(view.version.schema.names)
    sources = view.reader.sources({"gold": (view.version, columns)})
    engine = view.reader.engine
    with engine.connection(sources) as connection, engine.limited(connection):
        query = connection.sql(
            f"SELECT {listed(columns)} FROM gold WHERE {chosen.text} {order}",
            params=list(chosen.parameters),
        )
        batches = query.to_arrow_reader(65_536)
        schema = _flat(batches.schema) if form == "csv" else batches.schema
        opened = csv.CSVWriter if form == "csv" else pq.ParquetWriter
        with opened(file, schema) as writer:
            for batch in batches:
                content = pa.Table.from_batches([batch])
                writer.write_table(_cast(content, schema))


def _flat(schema: Any) -> Any:
    """The schema for CSV: nested values become JSON texts, and times with a zone become texts."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(f.name, pa.string()) if pa.types.is_nested(f.type) or _has_zone(f.type) else f
            for f in schema
        ]
    )


def _has_zone(type_: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_timestamp(type_) and type_.tz is not None


def _cast(content: Any, schema: Any) -> Any:
    import json

    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(schema):
        column = content.column(place)
        if column.type == field.type:
            continue
        if _has_zone(column.type):
            # Arrow could write a time with a zone itself, but 20 times slower.
            plain = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
            texts = pc.binary_join_element_wise(plain, "Z", "")
        else:
            values = (
                None if value is None else json.dumps(value, default=str, ensure_ascii=False)
                for value in column.to_pylist()
            )
            texts = pa.array(values, pa.string())
        content = content.set_column(place, field, texts)
    return content


def _order(view: GoldView, sort: str | None) -> str:
    """Raises BadQuestionError if there is no such column."""
    facts, names = view.facts, view.version.schema.names
    always = [*([f"{quoted(facts.begin)} DESC"] if facts.begin else []), *map(quoted, facts.keys)]
    if not sort:
        return ", ".join(always) or "1"
    name = sort.removeprefix("-")
    if name not in names:
        raise BadQuestionError(
            f"{facts.table} has no column {name[:80]!r}",
            remedy=f"its columns: {', '.join(names)}",
        )
    direction = "DESC" if sort.startswith("-") else "ASC"
    return ", ".join([f"{quoted(name)} {direction} NULLS LAST", *always])
