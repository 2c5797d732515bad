"""SQL over all tables of pipelines, by name, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from headgate.commands import SEE_DAMAGE, pipeline_command, rendered
from headgate.declaration.kinds import REJECTED
from headgate.insight.querying.failures import DamagedTableError, failure
from headgate.insight.querying.names import LAYERS, Named, Queried, tables
from headgate.insight.querying.sandbox import connected, lock, require_reading
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import NoTablesError

if TYPE_CHECKING:
    import duckdb

    from headgate.declaration.model import Pipeline

_NO_TABLES = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_FULL_NAME = re.compile(
    rf'(?<![\w."])"?(\w+)"?\s*\.\s*'
    rf'(?:"?(?:{"|".join(LAYERS)})"?\s*\.|"?(?:quarantine|files)"?(?![\w."]))',
    re.IGNORECASE,
)


def pipelines_in(sql: str, declared: Collection[str]) -> list[str]:
    """The pipelines in full names of tables, each once. In ``x.files``, ``x`` may also be an alias
    of a table; it counts only if it is the name of one of the ``declared`` pipelines."""
    found = dict.fromkeys(
        (match[1].lower(), len(re.findall(r"\.", match[0])) > 1)
        for match in _FULL_NAME.finditer(_NO_TABLES.sub(" ", sql))
    )
    return list(
        dict.fromkeys(
            name for name, full in found if name not in LAYERS and (full or name in declared)
        )
    )


def select(pipeline: Pipeline, layout: Layout, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """As :func:`answer`, for one pipeline."""
    queried = Queried(pipeline, layout)
    return answer([queried], sql, short=queried)


def answer(
    queried: Sequence[Queried], sql: str, *, short: Queried | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a query over the tables of these pipelines. Tables of ``short`` may also
    be named without the pipeline.

    Raises QueryError with the problem and the names of the tables, DamagedTableError.
    """
    connection = connected()
    opened: list[tuple[Queried, str]] = []
    import duckdb

    try:
        require_reading(connection, sql)
        for each in queried:
            paths = _open_tables(connection, each, sql, short=each is short)
            opened += [(each, path) for path in paths]
        lock(connection)
        answered = connection.execute(sql)
        return [column[0] for column in answered.description or ()], answered.fetchall()
    except duckdb.Error as error:
        raise failure(error, queried, short, opened) from error


def _open_tables(
    connection: duckdb.DuckDBPyConnection, queried: Queried, sql: str, *, short: bool
) -> list[str]:
    """Create views of the tables that the query mentions; opening a log takes time. Returns their
    paths."""
    words = set(re.findall(r"\w+", sql.lower()))
    every = bool(words & {"show", "information_schema", "duckdb_views"})
    name = queried.pipeline.name
    catalogs = ["memory"] if short else []
    if not short or name in pipelines_in(sql, (name,)):
        connection.execute(f"""ATTACH ':memory:' AS "{name}" """)
        catalogs.append(name)
    opened = []
    for table in tables(queried.pipeline):
        # A table of rejected rows has the name of its silver table, and may not exist yet.
        named = table.bare in words or table.name in words
        if every or (named and (table.schema != REJECTED.name or table.schema in words)):
            _open(connection, table, queried, catalogs)
            opened.append(table.path)
    return opened


def _open(
    connection: duckdb.DuckDBPyConnection, table: Named, queried: Queried, catalogs: Sequence[str]
) -> None:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    name, layout = queried.pipeline.name, queried.layout
    uri = layout.storage.uri(table.path)
    try:
        data = DeltaTable(uri, queried.versions.get(table.path)).to_pyarrow_dataset()
    except TableNotFoundError as error:
        again = rendered(pipeline_command("run", "--once"), queried.place)
        raise NoTablesError(name, layout.storage.root, again) from error
    except DeltaError as error:
        raise DamagedTableError(
            f"{uri} cannot be read: {str(error).splitlines()[0]}",
            remedy="see what is damaged and what would repair it: "
            + rendered(SEE_DAMAGE, queried.place),
        ) from error
    held = f"{name}__{table.schema}__{table.name}"
    connection.register(held, data)
    for catalog in catalogs:
        places = [
            f'"{table.schema}"."{table.name}"',
            *([f'main."{table.bare}"'] * bool(table.bare)),
        ]
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{catalog}"."{table.schema}"')
        for place in places:
            connection.execute(
                f'CREATE VIEW "{catalog}".{place} AS SELECT * FROM temp.main."{held}"'
            )
