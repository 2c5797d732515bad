"""The table ``headgate_publications`` with the positions of the publications, and its triggers.

There is one such table for each schema. A position is updated in the transaction that writes the
rows. The triggers mark the position of a table when another writer changes its rows, and a
publication never overwrites such a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from psycopg2.sql import SQL, Composable, Composed, Identifier, Literal

from headgate.commands import pipeline_command
from headgate.flow.publish.sinks.postgres.connecting import LOCK_WAIT, TURN
from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.writers import KEY, MirrorVersion, SinkContext, SinkRefusalError

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

POSITIONS = "headgate_publications"
_FUNCTION, _ROWS, _EMPTIED = "headgate_changed", "headgate_changed", "headgate_emptied"
_SETTING = "headgate.writes"

_CREATE = SQL(
    """CREATE TABLE IF NOT EXISTS {positions} (
    "table" text PRIMARY KEY,
    pipeline text NOT NULL,
    publication text NOT NULL,
    relation oid NOT NULL,
    source text NOT NULL,
    version bigint NOT NULL,
    batch bigint NOT NULL,
    files text NOT NULL,
    written_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone,
    changed_by text,
    columns text[] NOT NULL)"""
)
# SECURITY DEFINER: users who change rows may have no permission to write positions.
_MARK = SQL(
    """CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $mark$
    BEGIN
        UPDATE {positions} SET changed_at = now(), changed_by = session_user
        WHERE relation = TG_RELID AND changed_at IS NULL;
        RETURN NULL;
    END $mark$"""
)
_WATCH = (
    SQL("DROP TRIGGER IF EXISTS {rows} ON {table}"),
    SQL("DROP TRIGGER IF EXISTS {emptied} ON {table}"),
    SQL(
        """CREATE TRIGGER {rows} AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW
        WHEN (current_setting({setting}, true) IS DISTINCT FROM {relation})
        EXECUTE FUNCTION {function}()"""
    ),
    SQL(
        "CREATE TRIGGER {emptied} AFTER TRUNCATE ON {table} FOR EACH STATEMENT "
        "EXECUTE FUNCTION {function}()"
    ),
)


@dataclass(frozen=True)
class StoredPosition:
    """A row of ``headgate_publications``. ``relation`` is PostgreSQL's id of the table; ``changed``
    is when and by whom the rows were changed, if it was not this publication. ``columns`` are those
    that the publication has written."""

    owner: tuple[str, str]
    relation: int
    version: MirrorVersion
    changed: tuple[datetime, str] | None
    columns: frozenset[str]


class PositionTable:
    """Statements about the position of one publication, in a transaction of the caller."""

    def __init__(self, sink: PostgresSink, context: SinkContext) -> None:
        self._sink = sink
        self._owner = context.pipeline, context.name
        self._reset = pipeline_command("publication reset", context.name)
        self.table = Identifier(sink.schema, sink.table)
        self._positions = f'"{sink.schema}".{POSITIONS}'
        self._names = {
            "positions": Identifier(sink.schema, POSITIONS),
            "function": Identifier(sink.schema, _FUNCTION),
            "table": self.table,
            "rows": Identifier(_ROWS),
            "emptied": Identifier(_EMPTIED),
            "setting": Literal(_SETTING),
        }

    def relation(self, cursor: Cursor) -> int | None:
        """PostgreSQL's id of the table; None if the table does not exist."""
        cursor.execute("SELECT to_regclass(%s)::oid", (self._sink.quoted,))
        found = cursor.fetchone()
        return None if found is None or found[0] is None else int(found[0])

    def entry(self, cursor: Cursor, *, lock: bool = False) -> StoredPosition | None:
        """The position; None if there is none. With ``lock``, other transactions wait for its
        row."""
        cursor.execute("SELECT to_regclass(%s)", (self._positions,))
        if (there := cursor.fetchone()) is None or there[0] is None:
            return None
        select = self._sql(
            "SELECT pipeline, publication, relation, source, version, files, batch, changed_at, "
            'changed_by, columns FROM {positions} WHERE "table" = %s'
            + (" FOR UPDATE" if lock else "")
        )
        cursor.execute(select, (self._sink.table,))
        if (row := cursor.fetchone()) is None:
            return None
        version = MirrorVersion(row[3], int(row[4]), row[5], int(row[6]))
        changed = (row[7], str(row[8])) if row[7] is not None else None
        return StoredPosition((row[0], row[1]), int(row[2]), version, changed, frozenset(row[9]))

    def require_own(self, cursor: Cursor, entry: StoredPosition) -> None:
        """Raises SinkRefusalError if the table belongs to another publication, or is no longer as
        this publication has left it."""
        if entry.owner != self._owner:
            pipeline, name = entry.owner
            raise SinkRefusalError(
                f"{self._sink.name} belongs to the publication {name} of {pipeline}; write to "
                "another table: change the key table"
            )
        relation = self.relation(cursor)
        if relation is None:
            raise self._refusal("does not exist, or has another name now", "give it its name back")
        if relation != entry.relation or not self._is_watched(cursor, relation):
            raise self._refusal("was created again, or has lost its triggers", "put it back")
        if entry.changed is not None:
            at, by = entry.changed
            raise self._refusal(f"was changed by {by} at {at:%F %T}Z, and is not overwritten", "")

    def _refusal(self, what: str, instead: str) -> SinkRefusalError:
        other = f"{instead}; or, to" if instead else "to"
        return SinkRefusalError(
            f"{self._sink.name} in PostgreSQL {what}; {other} fill it again from the first row: "
            f"{self._reset}"
        )

    def require_columns(self, entry: StoredPosition, missing: Iterable[str]) -> None:
        """Raises SinkRefusalError if a column that the publication has written is missing. Rows
        that do not change are not written again, so the values would stay lost."""
        if lost := sorted(entry.columns.intersection(missing)):
            raise self._refusal(f"has lost the column {', '.join(lost)}", "")

    def has_foreign_rows(self, cursor: Cursor) -> bool:
        """Whether the table has rows although no publication has a position for it."""
        cursor.execute(SQL("SELECT EXISTS (SELECT FROM {})").format(self.table))
        found = cursor.fetchone()
        return bool(found and found[0])

    def refuse_foreign_rows(self) -> SinkRefusalError:
        return SinkRefusalError(
            f"{self._sink.name} in PostgreSQL has rows that this publication has not written; "
            f"write to another table, or remove these rows: {self._reset}"
        )

    def create(self, cursor: Cursor) -> None:
        """Create what is missing: the schema, the table of positions, the function of the triggers,
        and the table with its key. All publications of a database do this one after the other, so
        the caller commits at once."""
        cursor.execute(f"SET LOCAL lock_timeout TO '{TURN}s'")
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('headgate'))")
        cursor.execute(f"SET LOCAL lock_timeout TO '{LOCK_WAIT}'")
        # IF NOT EXISTS asks for the right to create a schema, also if there is one.
        cursor.execute("SELECT FROM pg_namespace WHERE nspname = %s", (self._sink.schema,))
        if cursor.fetchone() is None:
            cursor.execute(SQL("CREATE SCHEMA {}").format(Identifier(self._sink.schema)))
        cursor.execute(self._sql(_CREATE))
        cursor.execute(self._sql(_MARK))
        if self.relation(cursor) is None:
            cursor.execute(
                SQL("CREATE TABLE {} ({} bytea PRIMARY KEY)").format(self.table, Identifier(KEY))
            )

    def watch(self, cursor: Cursor, relation: int) -> None:
        """Create the triggers that mark changes by other writers."""
        for statement in _WATCH:
            cursor.execute(self._sql(statement, relation=Literal(str(relation))))

    def _is_watched(self, cursor: Cursor, relation: int) -> bool:
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = %s AND tgname IN (%s, %s) "
            "AND tgenabled IN ('O', 'A')",
            (relation, _ROWS, _EMPTIED),
        )
        found = cursor.fetchone()
        return found is not None and found[0] == 2

    def writes(self, cursor: Cursor, relation: int) -> None:
        """Mark the rest of the transaction as this publication's, so that the trigger on rows
        ignores it."""
        cursor.execute("SELECT set_config(%s, %s, true)", (_SETTING, str(relation)))

    def begin(
        self, cursor: Cursor, relation: int, upto: MirrorVersion, columns: Iterable[str]
    ) -> None:
        """Insert the first position of a table. Raises IntegrityError if another driver has
        inserted it."""
        insert = self._sql(
            "INSERT INTO {positions} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, now(), NULL, NULL, %s)"
        )
        version = (upto.table, upto.number, upto.n, upto.files)
        values = (self._sink.table, *self._owner, relation, *version, list(columns))
        cursor.execute(insert, values)

    def move(self, cursor: Cursor, upto: MirrorVersion, columns: Iterable[str]) -> None:
        update = self._sql(
            "UPDATE {positions} SET source = %s, version = %s, batch = %s, files = %s, "
            'columns = %s, written_at = now() WHERE "table" = %s'
        )
        version = (upto.table, upto.number, upto.n, upto.files)
        cursor.execute(update, (*version, list(columns), self._sink.table))

    def forget(self, cursor: Cursor) -> None:
        cursor.execute(self._sql('DELETE FROM {positions} WHERE "table" = %s'), (self._sink.table,))

    def _sql(self, text: str | SQL, **more: Composable) -> Composed:
        statement = SQL(text) if isinstance(text, str) else text
        return statement.format(**self._names, **more)
