"""``headgate query``: SQL over all tables of a pipeline, by name, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from headgate.cli import declaration, exit_codes
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import console, print_json
from headgate.cli.rows import as_text, print_rows
from headgate.spec.errors import HeadgateError
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    import duckdb

    from headgate.spec.model import Pipeline

HIDDEN = "_state"
"""What an open gold row is folded on from: no answer to anybody's question."""

READING = ("SELECT", "EXPLAIN", "PRAGMA", "MULTI")
"""Statements that answer; MULTI is what DuckDB makes of a PIVOT. SHOW and DESCRIBE are SELECTs."""


class QueryError(HeadgateError):
    exit_code: ClassVar[int] = 2


class DamagedTableError(HeadgateError):
    exit_code: ClassVar[int] = exit_codes.LOG_GAP


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
    if pipeline.source.files:
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
    """Ask the tables with SQL. They are bronze.SOURCE, silver.T, gold.T, late.T, quarantine, files;
    the SQL is DuckDB's, and only reads."""
    declared = declaration.load(pipeline)
    columns, rows = select(declared, Layout.of(root, declared.name), sql)
    if json:
        print_json({"columns": columns, "rows": [[_plain(v) for v in row] for row in rows]})
        return
    print_rows(console(), columns, rows)


def select(pipeline: Pipeline, layout: Layout, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a query, which reads these tables and nothing else.

    Raises QueryError with what is wrong and the tables that there are.
    """
    import duckdb

    # Else a name that is no table could be a variable of this program.
    connection = duckdb.connect(config={"python_enable_replacements": False})
    try:
        _check_reads_only(connection, sql)
        connection.execute("SET TimeZone = 'UTC'")
        _open_tables(connection, pipeline, layout, sql)
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        answer = connection.execute(sql)
        return [column[0] for column in answer.description or ()], answer.fetchall()
    except duckdb.PermissionException as error:
        raise QueryError(
            f"a query reads the tables of {pipeline.name}, no files and no network:\n{error}",
            remedy=_tables_are(pipeline),
        ) from error
    except duckdb.Error as error:
        raise QueryError(str(error), remedy=_tables_are(pipeline)) from error


def _check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises QueryError unless ``sql`` is one statement that answers something."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        said = "several statements" if statements else "no statement"
        raise QueryError(f"the query holds {said}", remedy="give one, such as SELECT 1")
    kind = statements[0].type.name
    if kind not in READING:
        raise QueryError(
            f"a query only reads: {kind} is refused, nothing has been changed",
            remedy="ask with SELECT; to keep an answer: headgate query PIPELINE SQL --json > FILE",
        )


def _tables_are(pipeline: Pipeline) -> str:
    known = ", ".join(f"{t.schema}.{t.name}" for t in tables(pipeline) if t.schema[0] != "_")
    return f"tables: {known}, quarantine, files"


def _open_tables(
    connection: duckdb.DuckDBPyConnection, pipeline: Pipeline, layout: Layout, sql: str
) -> None:
    """Views of the tables that the query mentions: opening a log takes time, so no others."""
    words = set(re.findall(r"\w+", sql.lower()))
    every = bool(words & {"show", "information_schema", "duckdb_views"})
    for table in tables(pipeline):
        if every or table.name in words or table.bare in words:
            _open(connection, table, layout, pipeline)


def _open(
    connection: duckdb.DuckDBPyConnection, table: Named, layout: Layout, pipeline: Pipeline
) -> None:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    uri = layout.storage.uri(table.path)
    try:
        data = DeltaTable(uri).to_pyarrow_dataset()
    except TableNotFoundError as error:
        raise HeadgateError(
            f"{pipeline.name} has no tables under {layout.storage.root}",
            remedy="headgate run PIPELINE --once, or name its folder with --root",
        ) from error
    except DeltaError as error:
        raise DamagedTableError(
            f"{uri} cannot be read: {str(error).splitlines()[0]}",
            remedy="see what is damaged and what would mend it: headgate repair PIPELINE --dry-run",
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


def _plain(value: object) -> object:
    """JSON's own types as they are; everything else as text, so that no digit is lost."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else as_text(value)
