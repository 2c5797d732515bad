"""What others do to the table: rows, columns, positions."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg2
import pyarrow as pa
import pytest

from headgate.flow.publish.sinks.postgres import connecting
from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror, reset_publication
from headgate.flow.publish.sinks.writers import KEY, SinkContext, SinkRefusalError
from tests.support.postgres import Server, is_there
from tests.unit.flow.publish.sinks.postgres.conftest import (
    CONTEXT,
    PLAIN,
    rows,
    sales,
    sink_of,
    step,
    until_locked,
)

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE sales SET total = 0 WHERE shop = 'a'",
        "DELETE FROM sales",
        "INSERT INTO sales (headgate_key, shop) VALUES ('x', 'y')",
        "TRUNCATE sales",
    ],
)
def test_what_others_change_is_not_written_over(
    server: Server, mirror: PostgresMirror, sql: str
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask(sql)
    changed = sales(server)
    with pytest.raises(SinkRefusalError, match="was changed by airflow at .*publication reset"):
        mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == changed
    with pytest.raises(SinkRefusalError, match="was changed by airflow"):
        mirror.held()
    assert "removed" in reset_publication(sink_of(server), CONTEXT)
    assert mirror.held() is None
    mirror.apply(step(rows(("a", 2)), 2))
    assert sales(server) == [("a", 2)]


def test_a_statement_of_others_that_changes_nothing_is_let_be(
    server: Server, mirror: PostgresMirror
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("UPDATE sales SET total = 0 WHERE shop = 'nobody'; SELECT * FROM sales")
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


def test_one_without_a_right_to_the_positions_is_told_too(
    server: Server, mirror: PostgresMirror
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("DROP ROLE IF EXISTS guest")
    server.ask(
        "CREATE ROLE guest; GRANT USAGE ON SCHEMA public TO guest; "
        "GRANT UPDATE, SELECT ON sales TO guest"
    )
    server.ask("SET SESSION AUTHORIZATION guest; UPDATE sales SET total = 9")
    with pytest.raises(SinkRefusalError, match="was changed by guest"):
        mirror.held()
    server.ask("DROP OWNED BY guest; DROP ROLE guest")


@pytest.mark.parametrize(
    ("sql", "back", "why"),
    [
        (
            "ALTER TABLE sales RENAME TO other",
            "ALTER TABLE other RENAME TO sales",
            "does not exist, or has another name",
        ),
        (
            "ALTER TABLE sales DISABLE TRIGGER headgate_changed",
            "ALTER TABLE sales ENABLE TRIGGER headgate_changed",
            "has lost its triggers",
        ),
    ],
)
def test_it_goes_on_once_the_table_is_back(
    server: Server, mirror: PostgresMirror, sql: str, back: str, why: str
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask(sql)
    with pytest.raises(SinkRefusalError, match=why):
        mirror.apply(step(rows(("a", 2)), 2, 1))
    server.ask(back)
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


def test_a_table_that_was_made_again_is_another(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("CREATE TABLE twin (LIKE sales INCLUDING ALL); DROP TABLE sales")
    server.ask("ALTER TABLE twin RENAME TO sales")
    with pytest.raises(SinkRefusalError, match="was created again"):
        mirror.apply(step(rows(("a", 2)), 2, 1))


def test_a_table_with_other_columns_is_refused(server: Server, mirror: PostgresMirror) -> None:
    server.ask("CREATE TABLE sales (shop text, total integer, note text)")
    with pytest.raises(SinkRefusalError) as refused:
        mirror.apply(step(rows(("a", 1)), 1))
    said = str(refused.value)
    assert 'ALTER TABLE "public"."sales" ALTER COLUMN "total" TYPE bigint' in said
    assert 'ALTER TABLE "public"."sales" DROP COLUMN "note"' in said
    server.ask('ALTER TABLE sales DROP COLUMN "note"')
    server.ask('ALTER TABLE "public"."sales" ALTER COLUMN "total" TYPE bigint')
    mirror.apply(step(rows(("a", 1)), 1))
    assert sales(server) == [("a", 1)]


def test_a_table_with_rows_of_others_is_refused(server: Server, mirror: PostgresMirror) -> None:
    server.ask("CREATE TABLE sales (shop text, total bigint); INSERT INTO sales VALUES ('a', 1)")
    with pytest.raises(SinkRefusalError, match="has rows that this publication has not written"):
        mirror.apply(step(rows(("b", 1)), 1))
    assert sales(server) == [("a", 1)]


@pytest.mark.parametrize("columns", ["shop text, total bigint", "shop text"])
def test_rows_that_others_commit_during_the_first_load_are_kept(
    server: Server, mirror: PostgresMirror, columns: str
) -> None:
    server.ask(f"CREATE TABLE sales ({KEY} bytea PRIMARY KEY, {columns})")
    said: list[str] = []

    def load() -> None:
        try:
            mirror.apply(step(rows(("b", 1)), 1))
        except SinkRefusalError as error:
            said.append(str(error))

    thread = threading.Thread(target=load)
    with closing(psycopg2.connect(server.url)) as other, other.cursor() as cursor:
        cursor.execute(f"INSERT INTO sales ({KEY}, shop) VALUES ('0', 'a')")
        thread.start()
        until_locked(server)
        other.commit()
    thread.join()
    assert ["has rows that this publication has not written" in text for text in said] == [True]
    assert server.ask("SELECT shop FROM sales") == [("a",)]


@pytest.mark.slow
def test_a_first_load_does_not_wait_for_ever(
    server: Server, mirror: PostgresMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ask(f"CREATE TABLE sales ({KEY} bytea PRIMARY KEY, shop text, total bigint)")
    with monkeypatch.context() as patched, server.locked("sales"):
        patched.setattr(connecting, "LOCK_WAIT", "200ms")
        with pytest.raises(psycopg2.Error) as waited:
            mirror.apply(step(rows(("b", 1)), 1))
        said = mirror.failure(waited.value) or ""
    assert said.endswith("lock timeout: another session has locked it for 200ms")
    mirror.apply(step(rows(("b", 1)), 1))
    assert sales(server) == [("b", 1)]


def test_a_new_column_is_added(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    wider = rows(("b", 2)).append_column("note", pa.array(["new"]))
    mirror.apply(step(wider, 2, 1, schema=pa.schema([*PLAIN, ("note", pa.string())])))
    assert server.ask("SELECT shop, note FROM sales ORDER BY 1") == [("a", None), ("b", "new")]


def test_a_column_that_was_dropped_is_not_made_up(server: Server, mirror: PostgresMirror) -> None:
    """The rows that do not change would have no values in a new column."""
    mirror.apply(step(rows(("a", 1), ("b", 2)), 1))
    mirror.close()
    server.ask("ALTER TABLE sales DROP COLUMN total")
    lost = "has lost the column total; to fill it again from the first row: .*publication reset"
    with pytest.raises(SinkRefusalError, match=lost):
        mirror.apply(step(rows(("b", 3)), 2, 1))
    reset_publication(sink_of(server), CONTEXT)
    mirror.apply(step(rows(("a", 1), ("b", 3)), 2))
    assert sales(server) == [("a", 1), ("b", 3)]


def test_a_column_that_left_and_came_back_is_new(server: Server, mirror: PostgresMirror) -> None:
    few = pa.schema([("shop", pa.string())])
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("ALTER TABLE sales DROP COLUMN total")
    mirror.apply(step(rows(("b", 2)).drop_columns("total"), 2, 1, schema=few))
    mirror.apply(step(rows(("c", 3)), 3, 2))
    assert sales(server) == [("a", None), ("b", None), ("c", 3)]


def test_a_table_has_one_publication(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    other = SinkContext("shop", "others", CONTEXT.storage)
    second = PostgresMirror(sink_of(server), other)
    with pytest.raises(SinkRefusalError, match="belongs to the publication sales of shop"):
        second.held()
    with pytest.raises(SinkRefusalError, match="belongs to the publication sales of shop"):
        reset_publication(sink_of(server), other)
    assert sales(server) == [("a", 1)]
