"""The rows of a gold table, by pages and as files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

from headgate.dashboard.errors import BadQuestionError, TooMuchError
from headgate.dashboard.questions.cells import cells, is_number, text_of
from headgate.dashboard.questions.facts import Facts
from headgate.dashboard.questions.reader import Reader
from headgate.dashboard.questions.selection import Selection
from headgate.dashboard.questions.span import chosen_rows, span
from headgate.dashboard.questions.sql import ALL, Condition, listed, quoted
from headgate.dashboard.reading.versions import Version
from headgate.declaration.model import GoldTable

MOST_ROWS_OF_A_FILE = 5_000_000
MOST_ROWS_IN_ORDER = 1_000_000
"""A file with more rows is not sorted, because a sort needs all rows in memory."""
REACHABLE = 100_000
"""Rows that pages show at most. Each page sorts all rows before it, too."""


@dataclass(frozen=True)
class RowsQuestion:
    """``sort`` is a column, or ``-column`` for descending order; without it, the newest results
    come first."""

    selection: Selection
    sort: str | None = None
    page: int = 0
    size: int = 50


def part_of(page: int, size: int) -> tuple[int, int]:
    """LIMIT and OFFSET of a page; no row of it is after ``REACHABLE``."""
    offset = page * size
    return max(min(size, REACHABLE - offset), 0), offset


def rows(
    reader: Reader, table: GoldTable, facts: Facts, question: RowsQuestion, gold: Version
) -> dict[str, Any]:
    """A page of rows. ``total`` is the number of rows that were chosen; ``numbers`` says which
    columns are numbers, and ``cells`` has texts, null for null."""
    chosen = chosen_rows(reader, table, facts, question.selection, gold)
    order = _order(facts, question.sort, gold)
    columns, types = tuple(gold.schema.names), reader.types(gold)
    total = _total(reader, facts, chosen, gold)
    limit, offset = part_of(question.page, question.size)
    found = span(reader, facts, gold)
    near = chosen
    if found is not None and facts.begin is not None and not question.sort and chosen == ALL:
        # Without a selection, a page has rows of few windows. The condition on them skips files by
        # their statistics.
        first = found.from_newest(offset + limit)
        near = Condition(f"{quoted(facts.begin)} >= ?", (first,))
    shown = ", ".join(f"{text_of(name, types[name])} AS {quoted(name)}" for name in columns)
    page = reader.ask(
        f"SELECT {shown} FROM (SELECT * FROM gold WHERE {near.text} ORDER BY {order} "
        "LIMIT ? OFFSET ?)",
        [*near.parameters, limit, offset],
        gold=(gold, columns),
    ).rows
    return {
        "columns": columns,
        "types": [types[name].lower() for name in columns],
        "numbers": [is_number(types[name]) for name in columns],
        "total": total,
        "reachable": min(total, REACHABLE),
        "page": question.page,
        "size": question.size,
        "cells": [cells(row) for row in page],
    }


def _total(reader: Reader, facts: Facts, chosen: Condition, gold: Version) -> int:
    if chosen == ALL:
        return gold.rows
    ((total,),) = reader.ask(
        f"SELECT count(*) FROM gold WHERE {chosen.text}",
        chosen.parameters,
        gold=(gold, (*_bounds(facts), *facts.keys)),
    ).rows
    return int(total)


def write_file(
    reader: Reader,
    table: GoldTable,
    facts: Facts,
    selection: Selection,
    gold: Version,
    form: str,
    file: BinaryIO,
) -> None:
    """Write the chosen rows as CSV or Parquet, whole and exact: nothing is cut or masked. The
    newest results come first if there are at most ``MOST_ROWS_IN_ORDER`` rows. Raises TooMuchError,
    BadQuestionError."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    if form not in ("csv", "parquet"):
        raise BadQuestionError(f"no file of the format {form[:20]!r}", remedy="csv or parquet")
    chosen = chosen_rows(reader, table, facts, selection, gold)
    if (total := _total(reader, facts, chosen, gold)) > MOST_ROWS_OF_A_FILE:
        raise TooMuchError(
            f"more than {MOST_ROWS_OF_A_FILE:,} rows",
            remedy="choose a shorter time or the rows of one key, or read the Delta table itself",
        )
    order = f"ORDER BY {_order(facts, None, gold)}" if total <= MOST_ROWS_IN_ORDER else ""
    columns = tuple(gold.schema.names)
    sources = reader.sources({"gold": (gold, columns)})
    engine = reader.engine
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


def _bounds(facts: Facts) -> tuple[str, ...]:
    return tuple(column for column in (facts.begin, facts.end) if column)


def _order(facts: Facts, sort: str | None, gold: Version) -> str:
    """Raises BadQuestionError if there is no such column."""
    always = [*([f"{quoted(facts.begin)} DESC"] if facts.begin else []), *map(quoted, facts.keys)]
    if not sort:
        return ", ".join(always) or "1"
    name = sort.removeprefix("-")
    if name not in gold.schema.names:
        raise BadQuestionError(
            f"{facts.table} has no column {name[:80]!r}",
            remedy=f"its columns: {', '.join(gold.schema.names)}",
        )
    direction = "DESC" if sort.startswith("-") else "ASC"
    return ", ".join([f"{quoted(name)} {direction} NULLS LAST", *always])
