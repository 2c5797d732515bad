"""SQL over all tables of pipelines, by name, without a JVM, and the errors of a failed query."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from headgate import exit_codes
from headgate.commands import SEE_DAMAGE, pipeline_command, rendered, shell_command
from headgate.errors import HeadgateError
from headgate.insight.querying.names import (
    LAYERS,
    Named,
    Queried,
    known_names,
    nearest_names,
    tables,
)
from headgate.insight.querying.sandbox import QueryError, connected, lock, require_reading
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.damage import is_about_reading, require_readable
from headgate.lake.tables.errors import NoTablesError
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    import duckdb

    from headgate.declaration.model import Pipeline


_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_NO_TABLE = re.compile(
    r'^Catalog Error: Table with name "?(.+?)"? does not exist.*?\n\n', re.DOTALL
)


class DamagedTableError(HeadgateError, code=exit_codes.LOG_GAP):
    """A table of the query cannot be read."""


def failure(
    error: duckdb.Error,
    queried: Sequence[Queried],
    short: Queried | None,
    opened: Sequence[tuple[Queried, str]],
) -> HeadgateError:
    """The error of a failed query. ``opened`` are the tables that it has opened, by their paths."""
    import duckdb

    remedy = _tables_are(queried, short)
    if isinstance(error, duckdb.PermissionException):
        names = ", ".join(each.pipeline.name for each in queried) or "pipelines"
        said = f"a query can read only the tables of {names}, not files or the network:\n{error}"
        return QueryError(said, remedy)
    if is_about_reading(error):
        if damage := _damage(opened):
            return damage
        if "FileNotFoundError" in str(error) and any(each.versions for each in queried):
            return QueryError(
                "a vacuum has deleted files of these versions",
                remedy=f"choose a later batch: {pipeline_command('versions')}",
            )
    said = _COLOUR.sub("", str(error))
    if isinstance(error, duckdb.CatalogException):
        said = _NO_TABLE.sub(lambda found: _no_table(found[1], said, queried, short), said)
    return QueryError(said, remedy)


def _no_table(given: str, said: str, queried: Sequence[Queried], short: Queried | None) -> str:
    """The message about an unknown table, with the most similar table of the pipelines. DuckDB
    would suggest one of its internal tables, and ``given`` is the name without the pipeline."""
    named = [each for each in queried if f"{each.pipeline.name}.{given}" in said]
    near = nearest_names(given, known_names(named or queried, short))
    better = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"table {given} does not exist{better}\n\n"


def _damage(opened: Sequence[tuple[Queried, str]]) -> DamagedTableError | None:
    """The first damage of the newest versions of some tables."""
    for queried, path in opened:
        table = Table(queried.layout.storage, path, pipeline=queried.pipeline.name)
        try:
            require_readable([table])
        except HeadgateError as damage:
            return DamagedTableError(damage.message, rendered(damage.remedy, queried.place))
    return None


def _tables_are(queried: Sequence[Queried], short: Queried | None) -> str:
    if not queried:
        return f"name tables as shop.gold.TABLE; pipelines are in: {shell_command('list')}"
    return f"tables: {', '.join(known_names(queried, short))}"


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
        # A side table has the name of another table, and one of rejected rows may not exist yet.
        if every or table.bare in words or {table.schema, table.name} <= words:
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
