"""The SQL of a chart: what it may be, and which tables it reads.

DuckDB's own parser says what a statement reads, so nothing is guessed from its text. A statement
that is refused here could not read anything else anyway: the connection has no access to files, the
network or other tables (``insight.querying.sandbox``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from headgate.declaration.errors import Invalid
from headgate.declaration.kinds import GOLD
from headgate.insight.dashboard.boards.model import TableName
from headgate.insight.dashboard.reading.engine import first_line
from headgate.insight.querying.sandbox import QueryError, connected, lock, require_reading

if TYPE_CHECKING:
    import duckdb

FUNCTIONS = ("unnest", "range", "generate_series")
"""Table functions that read nothing."""
_MOST = 20_000  # characters


def tables_in(sql: str) -> tuple[TableName, ...]:
    """The gold tables that a SELECT reads, each once. Raises Invalid if ``sql`` is not a single
    SELECT, or reads something else."""
    import duckdb

    if len(sql) > _MOST:
        raise Invalid(f"has more than {_MOST:,} characters")
    connection = _parser().cursor()
    try:
        require_reading(connection, sql, ("SELECT",))
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    except duckdb.Error as error:
        raise Invalid(first_line(error)) from error
    except QueryError as error:
        raise Invalid(error.message) from error
    finally:
        connection.close()
    try:
        statement = json.loads(text)
        named = tuple(dict.fromkeys(_named(statement)))
    except RecursionError as error:
        raise Invalid("is nested too deeply") from error
    if statement.get("error"):
        # DuckDB classifies SHOW and DESCRIBE as SELECT, but cannot serialize them.
        raise Invalid(f"must be one SELECT: {statement.get('error_message', 'it is not a SELECT')}")
    return named


# Opening a connection takes ten times as long as a query on it, and a dashboard has many queries.
@cache
def _parser() -> duckdb.DuckDBPyConnection:
    connection = connected(autoinstall_known_extensions="false", temp_directory="")
    lock(connection)
    return connection


def _named(statement: Any) -> Iterator[TableName]:
    named = {name.lower() for each in _nodes(statement) for name in _defined(each)}
    for node in _nodes(statement):
        if node.get("type") == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in FUNCTIONS:
                raise Invalid(f"reads {name}(…): a chart reads only gold tables")
        elif node.get("type") in ("SHOW_REF", "COLUMN_DATA"):
            raise Invalid("must read gold tables")
        elif node.get("type") == "BASE_TABLE":
            catalog, schema, table = (
                str(node.get(part) or "") for part in ("catalog_name", "schema_name", "table_name")
            )
            if not catalog and not schema and table.lower() in named:
                continue
            if schema.lower() != GOLD.name:
                shown = ".".join(filter(None, (catalog, schema, table)))
                raise Invalid(
                    f"reads {shown}, which is not a gold table", None if schema else f"gold.{table}"
                )
            yield TableName(catalog.lower() or None, table.lower())


def _defined(node: dict[str, Any]) -> list[str]:
    """The names of the common table expressions of a query."""
    map_ = node.get("cte_map")
    return [str(entry["key"]) for entry in (map_ or {}).get("map", ())]


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _nodes(each)
