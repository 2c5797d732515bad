"""Keeps a table in PostgreSQL: rows and position are one transaction."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from psycopg2 import Error
from psycopg2.errors import DuplicateSchema, DuplicateTable, UniqueViolation
from psycopg2.sql import SQL, Composable, Identifier

from headgate.declaration.quantities import plural
from headgate.failpoints import failpoint
from headgate.flow.publish.sinks.postgres.columns import (
    column_types,
    copy_lines,
    missing_columns,
    require_fitting,
)
from headgate.flow.publish.sinks.postgres.connecting import (
    ANSWER,
    TURN,
    WRITE,
    connect,
    merging_takes,
    message_of,
    time_limit,
)
from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.postgres.index import (
    create_index,
    drop_others,
    ensure_unique,
    require_distinct,
)
from headgate.flow.publish.sinks.postgres.ledger import PositionTable, StoredPosition
from headgate.flow.publish.sinks.writers import (
    KEY,
    Mirror,
    MirrorVersion,
    SinkContext,
    SinkRefusalError,
    VersionDifference,
)

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from psycopg2.extensions import cursor as Cursor

_ROWS, _GONE = "headgate_rows", "headgate_gone"
_CREATED_MEANWHILE = (DuplicateSchema, DuplicateTable, UniqueViolation)
_COLUMNS = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


class PostgresMirror(Mirror):
    """One connection, which is opened again after each error."""

    def __init__(self, sink: PostgresSink, context: SinkContext) -> None:
        self._sink, self._context = sink, context
        self._ledger = PositionTable(sink, context)
        self._connection: Connection | None = None
        self._fits: pa.Schema | None = None
        self._is_indexed = False

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._fits, self._is_indexed = None, False
        if connection is not None:
            connection.close()

    def failure(self, error: Exception) -> str | None:
        return message_of(error, self._sink)

    def held(self) -> MirrorVersion | None:
        with self._transaction() as (connection, cursor), time_limit(connection, ANSWER):
            entry = self._ledger.entry(cursor)
            if entry is None:
                return None
            self._ledger.require_own(cursor, entry)
            return entry.version

    def apply(self, difference: VersionDifference) -> None:
        if difference.after is None:
            self._begin(difference)
        with self._transaction() as (connection, cursor):
            with time_limit(connection, ANSWER):
                relation = self._ready(cursor, difference)
                if not self._is_indexed:
                    require_distinct(self._sink, difference.keys)
                    drop_others(cursor, self._sink, relation, self._sink.keys)
                self._ledger.writes(cursor, relation)
            columns = list(column_types(difference.schema))
            names = [Identifier(name) for name in columns]
            schema = difference.schema
            count = self._copy(connection, cursor, _ROWS, names, difference.rows, schema)
            if difference.gone is not None:
                gone = [difference.gone] if difference.gone.num_rows else []
                count += self._copy(connection, cursor, _GONE, names[:1], gone, schema)
            failpoint("postgres.copied")
            seconds = merging_takes(count)
            with time_limit(connection, seconds):
                cursor.execute(f"SET LOCAL statement_timeout TO '{int(seconds)}s'")
                self._merge(cursor, names, is_whole=difference.gone is None)
                if not self._is_indexed:
                    create_index(cursor, self._sink, relation)
                    self._is_indexed = True
            failpoint("postgres.merged")
            with time_limit(connection, ANSWER):
                if difference.after is None:
                    self._ledger.begin(cursor, relation, difference.upto, columns)
                else:
                    self._ledger.move(cursor, difference.upto, columns)
        failpoint("postgres.committed")

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Connection, Cursor]]:
        """Commits at the end; after an error, the next call connects again."""
        if self._connection is None:
            self._connection = connect(self._sink, self._context)
        try:
            with self._connection.cursor() as cursor:
                yield self._connection, cursor
                with time_limit(self._connection, WRITE):
                    self._connection.commit()
        except BaseException:
            self.close()  # rolls back
            raise

    def _begin(self, difference: VersionDifference) -> None:
        """Create the table, with its columns and triggers, unless it is there. These transactions
        are short: what they lock, other publications or readers wait for, and a first load takes
        long. If the driver ends in between, the next one finds an empty table, and goes on."""
        try:
            self._create()
        except _CREATED_MEANWHILE:  # by another session, which was not a publication
            self._create()
        failpoint("postgres.created")
        self._fits, self._is_indexed = None, False
        with self._transaction() as (connection, cursor), time_limit(connection, ANSWER):
            relation = self._own_empty(cursor)
            self._fit(cursor, relation, difference)
            self._ledger.watch(cursor, relation)
        failpoint("postgres.prepared")

    def _create(self) -> None:
        with self._transaction() as (connection, cursor), time_limit(connection, ANSWER + TURN):
            self._ledger.create(cursor)

    def _ready(self, cursor: Cursor, difference: VersionDifference) -> int:
        """Prepare the table for a change of its rows; returns PostgreSQL's id of it. Raises
        SinkRefusalError unless it has the rows of ``after`` and can have the columns."""
        if difference.after is None:
            return self._own_empty(cursor)
        entry = self._ledger.entry(cursor, lock=True)
        if entry is None or entry.version != difference.after:
            raise self._refuse_other_driver()
        self._ledger.require_own(cursor, entry)
        self._fit(cursor, entry.relation, difference, entry)
        return entry.relation

    def _own_empty(self, cursor: Cursor) -> int:
        """Lock the table of a publication that has written nothing yet, and return PostgreSQL's id
        of it. Raises SinkRefusalError if it has rows, or a position."""
        # Wait for other writers: their rows are visible only after their commit.
        cursor.execute(SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(self._ledger.table))
        if self._ledger.entry(cursor) is not None:
            raise self._refuse_other_driver()
        if self._ledger.has_foreign_rows(cursor):
            raise self._ledger.refuse_foreign_rows()
        relation = self._ledger.relation(cursor)
        assert relation is not None
        return relation

    def _refuse_other_driver(self) -> SinkRefusalError:
        return SinkRefusalError(
            f"another driver has written to {self._sink.name} meanwhile; this one goes on from "
            "there"
        )

    def _fit(
        self,
        cursor: Cursor,
        relation: int,
        difference: VersionDifference,
        entry: StoredPosition | None = None,
    ) -> None:
        """Add the new columns. Raises SinkRefusalError if other columns differ or are missing, or
        if rows cannot be replaced. Without ``entry``, the table is empty."""
        if self._fits is not None and self._fits.equals(difference.schema):
            return
        declared = column_types(difference.schema)
        if taken := [name for name in difference.schema.names if name == KEY]:
            raise SinkRefusalError(f"the column {taken[0]} has a name that is Headgate's")
        cursor.execute(_COLUMNS, (relation,))
        there = {str(name): str(type_) for name, type_ in cursor.fetchall()}
        require_fitting(self._sink, self._context.name, declared, there)
        lacking = missing_columns(declared, there)
        if entry is not None:
            self._ledger.require_columns(entry, lacking)
        for name, type_ in lacking.items():
            key = " PRIMARY KEY" if name == KEY else ""
            add = SQL("ALTER TABLE {} ADD COLUMN {} " + type_ + key)
            cursor.execute(add.format(self._ledger.table, Identifier(name)))
        ensure_unique(cursor, self._sink, relation, is_empty=entry is None)
        self._fits = difference.schema

    def _copy(
        self,
        connection: Connection,
        cursor: Cursor,
        name: str,
        names: Sequence[Identifier],
        tables: Iterable[pa.Table],
        schema: pa.Schema,
    ) -> int:
        """Copy rows into a temporary table of this transaction. Returns their number."""
        count = 0
        columns, into = SQL(", ").join(names), Identifier("pg_temp", name)
        like = SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
        with time_limit(connection, ANSWER):
            cursor.execute(like.format(Identifier(name), columns, self._ledger.table))
        copy = SQL("COPY {} ({}) FROM STDIN").format(into, columns).as_string(cursor)
        for table in tables:
            ordered = table.select([each.strings[0] for each in names])
            for piece in copy_lines(ordered, schema):
                with time_limit(connection, WRITE):
                    cursor.copy_expert(copy, io.BytesIO(piece))
            count += table.num_rows
        return count

    def _merge(self, cursor: Cursor, names: Sequence[Identifier], *, is_whole: bool) -> None:
        key, table = Identifier(KEY), self._ledger.table
        parts: dict[str, Composable] = {
            "key": key,
            "table": table,
            "rows": Identifier("pg_temp", _ROWS),
            "gone": Identifier("pg_temp", _GONE),
        }
        if is_whole:
            unnamed = "DELETE FROM {table} AS old WHERE NOT EXISTS "
            unnamed += "(SELECT FROM {rows} AS new WHERE new.{key} = old.{key})"
            cursor.execute(SQL(unnamed).format(**parts))
        else:
            named = "DELETE FROM {table} AS old USING {gone} AS gone WHERE old.{key} = gone.{key}"
            cursor.execute(SQL(named).format(**parts))
        others = names[1:]
        parts |= {
            "columns": SQL(", ").join(names),
            "set": SQL(", ").join(SQL("{0} = excluded.{0}").format(name) for name in others),
            "old": SQL(", ").join(SQL("old.{}").format(name) for name in others),
            "new": SQL(", ").join(SQL("excluded.{}").format(name) for name in others),
        }
        upsert = "INSERT INTO {table} AS old ({columns}) SELECT {columns} FROM {rows} "
        upsert += "ON CONFLICT ({key}) DO UPDATE SET {set} "
        upsert += "WHERE ROW({old}) IS DISTINCT FROM ROW({new})"
        cursor.execute(SQL(upsert).format(**parts))


def reset_publication(sink: PostgresSink, context: SinkContext) -> str:
    """Remove all rows of the table and its position, in one transaction. Returns what was done.
    Raises SinkRefusalError."""
    try:
        connection = connect(sink, context)
        try:
            with time_limit(connection, WRITE), connection, connection.cursor() as cursor:
                return _reset(cursor, sink, PositionTable(sink, context), context)
        finally:
            connection.close()
    except Error as error:
        raise SinkRefusalError(str(message_of(error, sink))) from error


def _reset(cursor: Cursor, sink: PostgresSink, ledger: PositionTable, context: SinkContext) -> str:
    entry = ledger.entry(cursor, lock=True)
    if entry is not None and entry.owner != (context.pipeline, context.name):
        ledger.require_own(cursor, entry)
    relation, removed = ledger.relation(cursor), 0
    if relation is not None:
        ledger.writes(cursor, relation)
        cursor.execute(SQL("DELETE FROM {}").format(ledger.table))
        removed = cursor.rowcount
        drop_others(cursor, sink, relation, ())  # the next run creates one
    if entry is not None:
        ledger.forget(cursor)
    return f"removed {plural(removed, 'row')} of {sink.name}; the next run writes all rows again"
