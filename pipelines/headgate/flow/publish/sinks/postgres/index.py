"""The unique indexes of a table in PostgreSQL: that of the hash, by which rows are replaced, and
that of the declared keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from psycopg2.sql import SQL, Identifier

from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.writers import KEY, SinkRefusalError

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_END = "_headgate_keys"
_START = 32  # characters from the table's name; a name has at most 63 characters
_OWN = """SELECT it.relname, ARRAY(
        SELECT attname::text FROM unnest(indkey::int2[]) WITH ORDINALITY AS part (attnum, place)
        JOIN pg_attribute USING (attnum) WHERE attrelid = indrelid ORDER BY place)
    FROM pg_index JOIN pg_class AS it ON it.oid = indexrelid
    WHERE indrelid = %s AND indisunique AND right(it.relname, %s) = %s"""

# PostgreSQL does not replace rows by a partial index, or one whose creation has failed.
_REPLACES = """SELECT FROM pg_index
    JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indrelid = %s AND attname = %s AND indnkeyatts = 1
    AND indisunique AND indisvalid AND indpred IS NULL"""


def ensure_unique(cursor: Cursor, sink: PostgresSink, relation: int, *, is_empty: bool) -> None:
    """Make sure that rows can be replaced by the hash. An index is created only if the table is
    empty: otherwise it could take long, and block readers. Raises SinkRefusalError."""
    cursor.execute(_REPLACES, (relation, KEY))
    if cursor.fetchone() is not None:
        return
    if not is_empty:
        raise SinkRefusalError(
            f"{sink.name} in PostgreSQL has lost its primary key, so its rows cannot be replaced; "
            f"type: ALTER TABLE {sink.quoted} ADD UNIQUE ({KEY})"
        )
    # The table may have another primary key.
    unique = SQL("ALTER TABLE {} ADD UNIQUE ({})")
    cursor.execute(unique.format(Identifier(sink.schema, sink.table), Identifier(KEY)))


def require_distinct(sink: PostgresSink, keys: Sequence[str]) -> None:
    """Raises SinkRefusalError if rows with different ``keys`` can be equal in the columns of the
    index."""
    if sink.keys and (lacking := [name for name in keys if name not in sink.keys]):
        raise SinkRefusalError(
            f"rows with equal {', '.join(sink.keys)} can be several: add "
            f"{', '.join(lacking)} to the keys of the publication"
        )


def drop_others(cursor: Cursor, sink: PostgresSink, relation: int, keys: Sequence[str]) -> None:
    """Drop Headgate's indexes of the table that have other columns than ``keys``: they would reject
    rows."""
    for name, columns in _own(cursor, relation):
        if columns != list(keys):
            cursor.execute(SQL("DROP INDEX {}").format(Identifier(sink.schema, name)))


def create_index(cursor: Cursor, sink: PostgresSink, relation: int) -> None:
    """Create the index of the declared keys unless it exists."""
    if not sink.keys or any(columns == list(sink.keys) for _, columns in _own(cursor, relation)):
        return
    columns = SQL(", ").join(map(Identifier, sink.keys))
    index = SQL("CREATE UNIQUE INDEX {} ON {} ({})")
    table = Identifier(sink.schema, sink.table)
    cursor.execute(index.format(Identifier(_name(sink, relation)), table, columns))


def _name(sink: PostgresSink, relation: int) -> str:
    """A name that is unique to this table: a renamed table keeps the names of its indexes."""
    what = "\n".join((sink.table, str(relation), *sink.keys))
    digest = hashlib.sha256(what.encode()).hexdigest()[:16]
    return f"{sink.table[:_START]}_{digest}{_END}"


def _own(cursor: Cursor, relation: int) -> Iterator[tuple[str, list[str]]]:
    """Names and columns of the table's indexes that Headgate has created."""
    cursor.execute(_OWN, (relation, len(_END), _END))
    yield from ((str(name), list(columns)) for name, columns in cursor.fetchall())
