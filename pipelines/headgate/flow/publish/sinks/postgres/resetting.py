"""Lets a publication to PostgreSQL begin again with the first row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg2 import Error
from psycopg2.sql import SQL

from headgate.declaration.quantities import plural
from headgate.flow.publish.sinks.postgres.connecting import WRITE, bounded, connect, message
from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.postgres.index import drop_others
from headgate.flow.publish.sinks.postgres.ledger import Ledger
from headgate.flow.publish.sinks.writers import SinkContext, SinkRefusalError

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor


def reset(sink: PostgresSink, context: SinkContext) -> str:
    """Remove all rows of the table and its position, in one transaction. Returns what was done.
    Raises SinkRefusalError."""
    try:
        connection = connect(sink, context)
        try:
            with bounded(connection, WRITE), connection, connection.cursor() as cursor:
                return _reset(cursor, sink, Ledger(sink, context), context)
        finally:
            connection.close()
    except Error as error:
        raise SinkRefusalError(str(message(error, sink))) from error


def _reset(cursor: Cursor, sink: PostgresSink, ledger: Ledger, context: SinkContext) -> str:
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
