"""SQL over all tables of pipelines, by name, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate import exit_codes
from headgate.commands import (
    SEE_DAMAGE,
    Place,
    pipeline_command,
    rendered,
    shell_command,
)
from headgate.declaration.kinds import FILES, LATE, QUARANTINE, RECORDS, REJECTED
from headgate.errors import HeadgateError
from headgate.graph.graph import graph_of
from headgate.querying.sandbox import QueryError, connected, lock, require_reading
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    import duckdb

    from headgate.declaration.model import Pipeline

LAYERS = ("bronze", "silver", "gold", "late", "quarantine", "rejected", "_headgate")
_NO_TABLES = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_FULL_NAME = re.compile(
    rf'(?<![\w."])"?(\w+)"?\s*\.\s*'
    rf'(?:"?(?:{"|".join(LAYERS)})"?\s*\.|"?(?:quarantine|files)"?(?![\w."]))',
    re.IGNORECASE,
)


class DamagedTableError(HeadgateError, code=exit_codes.LOG_GAP):
    """A table of the query cannot be read."""


@dataclass(frozen=True)
class Queried:
    """A pipeline whose tables a query reads. ``place`` is where commands about it are typed; that
    of this process if it is None. ``versions`` are those to read, by the tables' paths; of other
    tables, the newest."""

    pipeline: Pipeline
    layout: Layout
    place: Place | None = None
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """The names of a table in queries: ``schema.name``, and ``bare`` where that is unique."""

    schema: str
    name: str
    bare: str | None
    path: str


def tables(pipeline: Pipeline) -> Iterator[Named]:
    """Every table of a pipeline. A declaration gives no name to two of them."""
    for node in graph_of(pipeline):
        if node.kind == FILES:
            yield Named("_headgate", "files", "files", node.path)
        elif node.kind in RECORDS:
            bare = {QUARANTINE: "quarantine", LATE: None, REJECTED: None}.get(node.kind, node.name)
            yield Named(node.kind.name, node.name, bare, node.path)


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

    Raises QueryError with the problem and the names of the tables.
    """
    connection = connected()
    import duckdb

    try:
        require_reading(connection, sql)
        for each in queried:
            _open_tables(connection, each, sql, short=each is short)
        lock(connection)
        answered = connection.execute(sql)
        return [column[0] for column in answered.description or ()], answered.fetchall()
    except duckdb.PermissionException as error:
        names = ", ".join(each.pipeline.name for each in queried) or "pipelines"
        raise QueryError(
            f"a query reads the tables of {names}, no files and no network:\n{error}",
            remedy=_tables_are(queried, short),
        ) from error
    except duckdb.Error as error:
        if "FileNotFoundError" in str(error) and any(each.versions for each in queried):
            raise QueryError(
                "a vacuum has deleted files of these versions",
                remedy=f"choose a later batch: {pipeline_command('versions')}",
            ) from error
        raise QueryError(str(error), remedy=_tables_are(queried, short)) from error


def _tables_are(queried: Sequence[Queried], short: Queried | None) -> str:
    if not queried:
        return f"name tables as shop.gold.TABLE; pipelines are in: {shell_command('list')}"
    known: list[str] = []
    for each in queried:
        before = "" if each is short else f"{each.pipeline.name}."
        layers = [t for t in tables(each.pipeline) if t.schema[0] != "_"]
        known += [f"{before}{t.schema}.{t.name}" for t in layers]
        known += [f"{before}{name}" for name in ("quarantine", "files")]
    return f"tables: {', '.join(known)}"


def _open_tables(
    connection: duckdb.DuckDBPyConnection, queried: Queried, sql: str, *, short: bool
) -> None:
    """Create views of the tables that the query mentions; opening a log takes time."""
    words = set(re.findall(r"\w+", sql.lower()))
    every = bool(words & {"show", "information_schema", "duckdb_views"})
    name = queried.pipeline.name
    catalogs = ["memory"] if short else []
    if not short or name in pipelines_in(sql, (name,)):
        connection.execute(f"""ATTACH ':memory:' AS "{name}" """)
        catalogs.append(name)
    for table in tables(queried.pipeline):
        # A table of rejected rows has the name of its silver table, and may not be there yet.
        named = table.bare in words or table.name in words
        if every or (named and (table.schema != REJECTED.name or table.schema in words)):
            _open(connection, table, queried, catalogs)


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
        raise HeadgateError(
            f"{name} has no tables under {layout.storage.root}",
            remedy=f"{again}, or name its folder with --root",
        ) from error
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
