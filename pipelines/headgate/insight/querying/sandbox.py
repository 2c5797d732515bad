"""Connections of DuckDB that reach the tables that were given to them, and nothing else."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.insight.querying.without_pandas import leave_pandas_out

if TYPE_CHECKING:
    import duckdb

READING = ("SELECT", "EXPLAIN", "PRAGMA", "MULTI")
"""Statements that return rows. DuckDB reports a PIVOT as MULTI, SHOW and DESCRIBE as SELECT."""


class QueryError(HeadgateError, code=exit_codes.USAGE):
    """The SQL is wrong, or asks for more than reading tables."""


def connected(**limits: str | int) -> duckdb.DuckDBPyConnection:
    """A connection without tables. ``limits`` are settings of DuckDB, such as ``threads``."""
    leave_pandas_out()
    import duckdb

    # Else DuckDB reads an unknown table name from a Python variable of that name.
    connection = duckdb.connect(config={"python_enable_replacements": False, **limits})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def quoted(name: str) -> str:
    """A name as an identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """From now on, its SQL reaches no file and no network, and changes no setting."""
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")


def require_reading(
    connection: duckdb.DuckDBPyConnection, sql: str, kinds: Collection[str] = READING
) -> None:
    """Raises QueryError unless ``sql`` is one statement, of one of ``kinds``; duckdb.Error if it
    cannot be parsed."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        number = "several statements" if statements else "no statement"
        raise QueryError(f"the query holds {number}", remedy="give one, such as SELECT 1")
    kind = statements[0].type.name
    if kind not in kinds:
        raise QueryError(
            f"{kind} is not allowed in a query; nothing was changed",
            remedy="ask with SELECT; to keep an answer, write the output of --json to a file",
        )
