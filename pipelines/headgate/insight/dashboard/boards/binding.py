"""Gives the SQL of a chart its tables, under the names by which it reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.declaration.contracts.operator import gold_columns
from headgate.declaration.errors import Invalid
from headgate.declaration.model import GoldTable
from headgate.insight.dashboard.boards.model import TableName
from headgate.insight.dashboard.questions.sql import duck_type
from headgate.insight.dashboard.reading.engine import first_line
from headgate.insight.querying.sandbox import connected, lock, quoted

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Result:
    """The columns of an answer, and DuckDB's types of them."""

    columns: tuple[str, ...]
    types: tuple[str, ...]


Bind = Callable[[str, Mapping[TableName, str]], Result]
"""What a SELECT returns, from the columns of its tables (``declared_columns``). Raises Invalid."""


def bound(sql: str, tables: Mapping[TableName, str]) -> Result:
    """A ``Bind`` that runs in this process. DuckDB may compute constants when it binds a statement,
    so statements that are not trusted are bound by ``boards.runner``."""
    import duckdb

    connection = connected(threads=1, memory_limit="128MB", temp_directory="")
    try:
        for name, columns in tables.items():
            connection.execute(f"CREATE TEMP TABLE {quoted(registered(name))} ({columns})")
        for statement in views(tables):
            connection.execute(statement)
        lock(connection)
        rows = connection.execute(f"DESCRIBE SELECT * FROM ({bare(sql)})").fetchall()
    except duckdb.Error as error:
        raise Invalid(first_line(error)) from error
    finally:
        connection.close()
    return Result(tuple(row[0] for row in rows), tuple(row[1] for row in rows))


def bare(sql: str) -> str:
    """One statement without the semicolons around it, as a part of another statement."""
    import duckdb

    text = bytearray(sql.encode())
    for place, _ in duckdb.tokenize(sql):  # strings and comments are tokens of their own
        if text[place : place + 1] == b";":
            text[place : place + 1] = b" "
    return text.decode() + "\n"  # ends a comment


def registered(name: TableName) -> str:
    """The name under which the rows of a table are given to a connection."""
    return f"{name.pipeline or ''}__gold__{name.table}"


def views(tables: Mapping[TableName, object]) -> Iterator[str]:
    """The statements that let a connection find the tables by their names."""
    for catalog in dict.fromkeys(name.pipeline for name in tables if name.pipeline):
        yield f"ATTACH ':memory:' AS {quoted(catalog)}"
    for name in tables:
        schema = f"{quoted(name.pipeline or 'memory')}.gold"
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
        yield (
            f"CREATE VIEW {schema}.{quoted(name.table)} AS "
            f"SELECT * FROM temp.main.{quoted(registered(name))}"
        )


def prepare(connection: duckdb.DuckDBPyConnection, tables: Mapping[TableName, object]) -> None:
    """Create the views of the tables. Call it before the connection is locked."""
    for statement in views(tables):
        connection.execute(statement)


def declared_columns(table: GoldTable) -> str:
    """The columns of a gold table with DuckDB's types, as CREATE TABLE takes them."""
    columns = gold_columns(table).items()
    return ", ".join(f"{quoted(name)} {duck_type(type_)}" for name, type_ in columns)
