"""Publications that create the tables of a new schema, several at once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest

from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror, reset_publication
from headgate.flow.publish.sinks.writers import SinkContext, SinkRefusalError
from tests.support.failing import failing, passing
from tests.support.postgres import Server, is_there
from tests.unit.flow.publish.sinks.postgres.conftest import (
    CONTEXT,
    rows,
    sales,
    sink_of,
    step,
    until_locked,
    version,
)

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")


@pytest.fixture(autouse=True)
def _new_schema(server: Server) -> Iterator[None]:
    yield
    server.ask("DROP SCHEMA IF EXISTS reports CASCADE")


def _publication(server: Server, table: str) -> PostgresMirror:
    sink = sink_of(server, schema="reports", table=table)
    return PostgresMirror(sink, SinkContext("shop", table, CONTEXT.storage))


def _publish(server: Server, table: str) -> None:
    with closing(_publication(server, table)) as found:
        assert found.held() is None
        found.apply(step(rows(("a", 1)), 1))
        assert found.held() == version(1)


def _tables(server: Server) -> list[tuple[str, int]]:
    positions = 'SELECT "table", version FROM reports.headgate_publications ORDER BY 1'
    return [(str(table), int(number)) for table, number in server.ask(positions)]


def _at(place: str, act: Callable[[], None]) -> Callable[[str], None]:
    """Act when ``place`` is passed, for the first time."""
    acted: list[str] = []

    def pass_(name: str) -> None:
        if name == place and not acted:
            acted.append(name)
            act()

    return pass_


@pytest.mark.parametrize("place", ["postgres.created", "postgres.copied", "postgres.merged"])
def test_a_first_load_does_not_block_those_of_others(server: Server, place: str) -> None:
    """In the middle of its first load, two other publications begin and end theirs."""

    def others() -> None:
        _publish(server, "two")
        _publish(server, "three")
        assert _tables(server) == [("three", 1), ("two", 1)]

    with passing(_at(place, others)):
        _publish(server, "one")
    assert _tables(server) == [("one", 1), ("three", 1), ("two", 1)]


def test_many_create_at_once(server: Server) -> None:
    """Six publications, whose drivers connect at the same moment."""
    names = [f"t{n}" for n in range(6)]
    ready = threading.Barrier(len(names))

    def publish(name: str) -> None:
        ready.wait(30)
        _publish(server, name)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(publish, names))
    assert _tables(server) == [(name, 1) for name in names]


@pytest.mark.parametrize("place", ["postgres.created", "postgres.prepared", "postgres.merged"])
def test_a_driver_that_dies_before_its_rows_are_there_leaves_an_empty_table(
    server: Server, place: str
) -> None:
    with closing(_publication(server, "sales")) as first, failing(place):
        first.apply(step(rows(("a", 1)), 1))
    assert server.ask("SELECT count(*) FROM reports.sales") == [(0,)]
    _publish(server, "sales")
    assert server.ask("SELECT shop, total FROM reports.sales") == [("a", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["postgres.created", "postgres.prepared"])
def test_a_server_that_restarts_before_the_rows_are_there(server: Server, place: str) -> None:
    with closing(_publication(server, "sales")) as first:
        with passing(_at(place, server.stop)), pytest.raises(psycopg2.Error):
            first.apply(step(rows(("a", 1)), 1))
        server.start()
        assert first.held() is None
        first.apply(step(rows(("a", 1)), 1))
        assert first.held() == version(1)
    assert server.ask("SELECT shop, total FROM reports.sales") == [("a", 1)]


@pytest.mark.parametrize("place", ["postgres.created", "postgres.prepared"])
def test_rows_that_others_write_to_the_created_table_are_kept(server: Server, place: str) -> None:
    def write() -> None:
        server.ask("INSERT INTO reports.sales (headgate_key) VALUES ('x')")

    refused = pytest.raises(SinkRefusalError, match="has rows that this publication has not")
    with passing(_at(place, write)), refused:
        _publish(server, "sales")
    assert server.ask("SELECT encode(headgate_key, 'escape') FROM reports.sales") == [("x",)]


def test_two_drivers_of_one_publication_begin_at_once(server: Server) -> None:
    """The second waits for the table that the first loads, and is told what has happened."""
    said: list[str] = []

    def second() -> None:
        with closing(_publication(server, "sales")) as other:
            try:
                other.apply(step(rows(("a", 2)), 1))
            except SinkRefusalError as error:
                said.append(str(error))

    thread = threading.Thread(target=second)

    def begin() -> None:
        thread.start()
        until_locked(server)

    with passing(_at("postgres.merged", begin)):
        _publish(server, "sales")
    thread.join()
    assert said == [
        "another driver has written to reports.sales meanwhile; this one goes on from there"
    ]
    assert server.ask("SELECT shop, total FROM reports.sales") == [("a", 1)]


@pytest.mark.parametrize("what", ["SCHEMA reports", "TABLE public.sales (headgate_key bytea)"])
def test_what_another_session_creates_meanwhile_is_used(server: Server, what: str) -> None:
    schema = "reports" if "SCHEMA" in what else "public"
    failed: list[Exception] = []

    def publish() -> None:
        with closing(PostgresMirror(sink_of(server, schema=schema), CONTEXT)) as found:
            try:
                found.apply(step(rows(("a", 1)), 1))
            except psycopg2.Error as error:
                failed.append(error)

    thread = threading.Thread(target=publish)
    with closing(psycopg2.connect(server.url)) as other, other.cursor() as cursor:
        cursor.execute(f"CREATE {what}")
        thread.start()
        until_locked(server)
        other.commit()
    thread.join()
    assert failed == []
    assert server.ask(f"SELECT shop, total FROM {schema}.sales") == [("a", 1)]


def test_readers_of_a_table_that_is_filled_again_do_not_wait(
    server: Server, mirror: PostgresMirror
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    reset_publication(sink_of(server), CONTEXT)
    seen: list[object] = []

    def read() -> None:
        seen.extend(server.ask("SET lock_timeout TO '1s'; SELECT count(*) FROM sales"))

    with passing(_at("postgres.copied", read)):
        mirror.apply(step(rows(("a", 1), ("b", 2)), 1))
    assert seen == [(0,)]
    assert sales(server) == [("a", 1), ("b", 2)]


def test_a_schema_needs_no_right_to_create_schemas(server: Server) -> None:
    server.ask("DROP ROLE IF EXISTS writer")
    server.ask("CREATE ROLE writer LOGIN PASSWORD 'not-for-logs'")
    sink = sink_of(
        server, url=server.url.replace("airflow:", "writer:"), schema="reports", table="sales"
    )
    with closing(PostgresMirror(sink, CONTEXT)) as found:
        with pytest.raises(psycopg2.Error) as refused:
            found.apply(step(rows(("a", 1)), 1))
        assert "permission denied for database postgres" in (found.failure(refused.value) or "")
        server.ask("CREATE SCHEMA reports; GRANT ALL ON SCHEMA reports TO writer")
        found.apply(step(rows(("a", 1)), 1))
    assert _tables(server) == [("sales", 1)]
    server.ask("DROP OWNED BY writer; DROP ROLE writer")


@pytest.mark.parametrize("table", ["Order", "order"])
def test_a_table_whose_name_must_be_quoted(server: Server, table: str) -> None:
    """Also in the statement that a person types."""
    server.ask(f'CREATE TABLE "{table}" (shop text, total integer)')
    context = SinkContext("shop", "sales", CONTEXT.storage)
    with closing(PostgresMirror(sink_of(server, table=table), context)) as found:
        with pytest.raises(SinkRefusalError) as refused:
            found.apply(step(rows(("a", 1)), 1))
        (statement,) = re.findall("ALTER TABLE .* TYPE bigint", str(refused.value))
        server.ask(statement)
        found.apply(step(rows(("a", 1)), 1))
        found.apply(step(rows(("a", 2)), 2, 1))
    assert server.ask(f'SELECT shop, total FROM "{table}"') == [("a", 2)]
