"""``headgate query``: SQL over all tables of a pipeline, by name, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import console, grid, print_json
from headgate.spec.errors import HeadgateError
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    import duckdb

    from headgate.spec.model import Pipeline

HIDDEN = "_state"
"""What an open gold row is folded on from: no answer to anybody's question."""


class QueryError(HeadgateError):
    exit_code: ClassVar[int] = 2


@dataclass(frozen=True)
class Named:
    """A table as queries call it: ``schema.name``, and ``bare`` alone where that is unique."""

    schema: str
    name: str
    bare: str | None
    path: str


def tables(pipeline: Pipeline) -> Iterator[Named]:
    """Every table of a pipeline. A declaration gives no name to two of them."""
    source = pipeline.source.name
    yield Named("bronze", source, source, Layout.bronze(source))
    yield Named("quarantine", source, "quarantine", Layout.quarantine(source))
    yield Named("_headgate", "files", "files", Layout.files_log(source))
    for silver in pipeline.silver:
        yield Named("silver", silver, silver, Layout.silver(silver))
    for gold in pipeline.gold:
        yield Named("gold", gold, gold, Layout.gold(gold))
        yield Named("late", gold, None, Layout.late(gold))


def query(
    pipeline: PipelineName,
    sql: Annotated[str, typer.Argument(help='For example "SELECT * FROM gold.bids_per_minute".')],
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Ask with SQL (DuckDB's): bronze.SOURCE, silver.T, gold.T, late.T, quarantine, files."""
    declared = declaration.load(pipeline)
    columns, rows = select(declared, Layout.of(root, declared.name), sql)
    if json:
        print_json({"columns": columns, "rows": [[_plain(v) for v in row] for row in rows]})
        return
    table = grid("", *columns)
    for row in rows:
        table.add_row(*(as_text(value) for value in row))
    out = console()
    out.print(table)
    out.print(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}", style="dim")


def select(pipeline: Pipeline, layout: Layout, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a query. Raises QueryError with the tables that there are."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    _open_tables(connection, pipeline, layout, sql)
    try:
        answer = connection.execute(sql)
        names = [column[0] for column in answer.description or ()]
        return names, answer.fetchall()
    except duckdb.Error as error:
        known = ", ".join(f"{t.schema}.{t.name}" for t in tables(pipeline) if t.schema[0] != "_")
        raise QueryError(str(error), remedy=f"tables: {known}, files") from error


def _open_tables(
    connection: duckdb.DuckDBPyConnection, pipeline: Pipeline, layout: Layout, sql: str
) -> None:
    """Views of the tables that the query mentions: opening a log takes time, so no others."""
    words = set(re.findall(r"\w+", sql.lower()))
    for table in tables(pipeline):
        if table.name in words or table.bare in words:
            _open(connection, table, layout, pipeline)


def _open(
    connection: duckdb.DuckDBPyConnection, table: Named, layout: Layout, pipeline: Pipeline
) -> None:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    uri = layout.storage.uri(table.path)
    try:
        data = DeltaTable(uri).to_pyarrow_dataset()
    except TableNotFoundError as error:
        raise HeadgateError(
            f"{pipeline.name} has no tables under {layout.storage.root}",
            remedy=f"headgate run {pipeline.file} --once, or name its folder with --root",
        ) from error
    hidden = f" EXCLUDE ({HIDDEN})" if HIDDEN in data.schema.names else ""
    held = f"{table.schema}__{table.name}"
    connection.register(held, data)
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{table.schema}"')
    connection.execute(
        f'CREATE VIEW "{table.schema}"."{table.name}" AS SELECT *{hidden} FROM "{held}"'
    )
    if table.bare:
        connection.execute(f'CREATE VIEW main."{table.bare}" AS SELECT *{hidden} FROM "{held}"')


def as_text(value: object) -> str:
    """A value as a person reads it; bytes that are no text keep their escapes."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").replace("+00:00", "Z")
    return str(value)


def _plain(value: object) -> object:
    """JSON's own types as they are; everything else as text, so that no digit is lost."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else as_text(value)
