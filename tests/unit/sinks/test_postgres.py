"""The PostgreSQL sink alone, with a real server: values, other writers, and what fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pytest

from headgate.declaration.errors import DeclarationError
from headgate.sinks.contract import KEY, SINKS, Difference, SinkContext, SinkRefusalError, Version
from headgate.sinks.postgres import connecting
from headgate.sinks.postgres.declared import PostgresSink
from headgate.sinks.postgres.kind import NoPackageError
from headgate.sinks.postgres.mirror import PostgresMirror
from headgate.sinks.postgres.resetting import reset
from headgate.storage.files import Storage
from tests.support.failing import passing
from tests.support.postgres import PASSWORD, Server, is_there, running_server
from tests.support.sinks import declared

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")

CONTEXT = SinkContext("shop", "sales", Storage("/nowhere"))
PLAIN = pa.schema([("shop", pa.string()), ("total", pa.int64())])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _empty(server: Server) -> None:
    server.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def sink_of(server: Server, **more: Any) -> PostgresSink:
    written = server.url.replace(PASSWORD, "${env:PG}")
    return PostgresSink(
        **{"url": server.url, "written": written, "schema": "public", "table": "sales"} | more
    )


def version(number: int) -> Version:
    return Version("log", number, f"files-{number}", number)


def rows(*values: tuple[str | None, int]) -> pa.Table:
    keys = [str(shop).encode() for shop, _ in values]
    shops, totals = [v[0] for v in values], [v[1] for v in values]
    return pa.table({KEY: pa.array(keys, pa.binary()), "shop": shops, "total": totals})


def gone(*shops: str) -> pa.Table:
    return pa.table({KEY: pa.array([shop.encode() for shop in shops], pa.binary())})


def step(
    table: pa.Table,
    upto: int,
    after: int | None = None,
    less: pa.Table | None = None,
    schema: pa.Schema = PLAIN,
) -> Difference:
    if less is None and after is not None:
        less = gone()
    before = None if after is None else version(after)
    return Difference([table], less, schema, ("shop",), before, version(upto))


def sales(server: Server) -> list[tuple[Any, ...]]:
    return sorted(server.ask("SELECT shop, total FROM sales"))


@pytest.fixture
def mirror(server: Server) -> Iterator[PostgresMirror]:
    with closing(PostgresMirror(sink_of(server), CONTEXT)) as found:
        yield found


@pytest.mark.slow
def test_changed_new_and_gone_rows(server: Server, mirror: PostgresMirror) -> None:
    assert mirror.held() is None
    mirror.apply(step(rows(("a", 1), ("b", 2), ("c", 3)), 4))
    assert sales(server) == [("a", 1), ("b", 2), ("c", 3)]
    assert mirror.held() == version(4)
    mirror.apply(step(rows(("b", 20), ("d", 4)), 7, 4, gone("a", "x")))
    assert sales(server) == [("b", 20), ("c", 3), ("d", 4)]
    assert mirror.held() == version(7)
    # What is not known to have changed is compared: no row is written without need.
    before = server.ask("SELECT xmin::text FROM sales WHERE shop = 'c'")
    mirror.apply(
        Difference([rows(("c", 3), ("e", 5))], None, PLAIN, ("shop",), version(7), version(9))
    )
    assert sales(server) == [("c", 3), ("e", 5)]
    assert server.ask("SELECT xmin::text FROM sales WHERE shop = 'c'") == before


_TEXTS = ["a'b\"c\\d\te\nf\r", "nul \x00 end", "\\N", "", "é漢🙂"]
_LARGEST = Decimal("9999999999999999999999999999.9999999999")
_REALS = [float("inf"), float("-inf"), 1e308, 5e-324, -0.0]
_BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
_TIMES = [datetime.min.replace(tzinfo=UTC), _BEFORE_1970, datetime.max.replace(tzinfo=UTC)]
_TIME = pa.timestamp("us", "UTC")
HOSTILE: tuple[tuple[str, Any, list[Any], str], ...] = (
    ("text", pa.string(), _TEXTS, "text"),
    ("big", pa.string(), ["x" * 10_000_000], "text"),
    ("money", pa.decimal128(38, 10), [_LARGEST, Decimal("-1E-10")], "numeric(38,10)"),
    ("whole", pa.decimal128(38, 0), [Decimal(10**38 - 1)], "numeric(38,0)"),
    ("real", pa.float64(), _REALS, "double precision"),
    ("single", pa.float32(), [1.5], "real"),
    ("flag", pa.bool_(), [True, False], "boolean"),
    ("tiny", pa.int8(), [-128], "smallint"),
    ("long", pa.int64(), [-(2**63), 2**63 - 1], "bigint"),
    ("raw", pa.binary(), [b"\x00\xff\\x", b""], "bytea"),
    ("day", pa.date32(), [date.min, date(1969, 12, 31), date.max], "date"),
    ("at", _TIME, _TIMES, "timestamp with time zone"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "type_", "values", "wanted"), HOSTILE, ids=[each[0] for each in HOSTILE]
)
def test_values_and_types(
    server: Server, mirror: PostgresMirror, name: str, type_: Any, values: list[Any], wanted: str
) -> None:
    """PostgreSQL has no NUL in a text: what stands for unknown characters takes its place."""
    schema = pa.schema([(name, type_)])
    keys = pa.array([str(i).encode() for i in range(len(values) + 1)], pa.binary())
    table = pa.table({KEY: keys, name: pa.array([*values, None], type_)})
    mirror.apply(step(table, 1, schema=schema))
    ((found,),) = server.ask(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 'sales'::regclass AND attname = %s",
        name,
    )
    assert found == wanted
    there = [row[0] for row in server.ask(f'SELECT "{name}" FROM sales ORDER BY {KEY}')]
    there = [bytes(v) if isinstance(v, memoryview) else v for v in there]
    seen = [v.replace("\x00", "�") if isinstance(v, str) else v for v in values]
    assert there == [*seen, None]


@pytest.mark.slow
def test_times_that_python_does_not_have(server: Server, mirror: PostgresMirror) -> None:
    years = [-4711, -43, 0, 10_000, 200_000]
    micros = [_micros(year) for year in years] + [_micros(-100_000)]
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    at = pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
    keys = pa.array([str(i).encode() for i in range(len(micros))], pa.binary())
    mirror.apply(step(pa.table({KEY: keys, "at": at}), 1, schema=schema))
    found = [row[0] for row in server.ask(f"SELECT at::text FROM sales ORDER BY {KEY}")]
    assert [text.split(" ")[0] for text in found] == [
        "4712-01-01",
        "0044-01-01",
        "0001-01-01",
        "10000-01-01",
        "200000-01-01",
        "-infinity",
    ]
    assert [text.endswith("BC") for text in found] == [True, True, True, False, False, False]


def _micros(year: int) -> int:
    import numpy as np

    return int(
        np.datetime64(f"{year:05d}-01-01" if year < 0 else f"{year:04d}-01-01", "us").astype(
            np.int64
        )
    )


@pytest.mark.slow
def test_nested_values_are_documents(server: Server, mirror: PostgresMirror) -> None:
    schema = pa.schema([("tags", pa.list_(pa.string()))])
    texts = [r'["a", "nul \u0000", "not one: \\u0000", "\"", "NaN"]', "[]", None]
    keys = pa.array([b"1", b"2", b"3"], pa.binary())
    mirror.apply(step(pa.table({KEY: keys, "tags": texts}), 1, schema=schema))
    found = [row[0] for row in server.ask(f"SELECT tags FROM sales ORDER BY {KEY}")]
    assert found == [["a", "nul �", "not one: \\u0000", '"', "NaN"], [], None]
    assert server.ask("SELECT DISTINCT pg_typeof(tags)::text FROM sales") == [("jsonb",)]


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
    assert "removed" in reset(sink_of(server), CONTEXT)
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
            "is gone, or has another name",
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
    with pytest.raises(SinkRefusalError, match="was made again"):
        mirror.apply(step(rows(("a", 2)), 2, 1))


def test_a_table_with_other_columns_is_refused(server: Server, mirror: PostgresMirror) -> None:
    server.ask("CREATE TABLE sales (shop text, total integer, note text)")
    with pytest.raises(SinkRefusalError) as refused:
        mirror.apply(step(rows(("a", 1)), 1))
    said = str(refused.value)
    assert 'ALTER TABLE public.sales ALTER COLUMN "total" TYPE bigint' in said
    assert 'ALTER TABLE public.sales DROP COLUMN "note"' in said
    server.ask('ALTER TABLE sales DROP COLUMN "note"')
    server.ask('ALTER TABLE public.sales ALTER COLUMN "total" TYPE bigint')
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
        _until_locked(server)
        other.commit()
    thread.join()
    assert ["has rows that this publication has not written" in text for text in said] == [True]
    assert server.ask("SELECT shop FROM sales") == [("a",)]


@pytest.mark.slow
def test_a_first_load_does_not_wait_for_ever(server: Server, mirror: PostgresMirror) -> None:
    server.ask(f"CREATE TABLE sales ({KEY} bytea PRIMARY KEY, shop text, total bigint)")
    with server.locked("sales"), pytest.raises(psycopg2.Error) as waited:
        mirror.apply(step(rows(("b", 1)), 1))
    assert "lock timeout" in (mirror.failure(waited.value) or "")
    mirror.apply(step(rows(("b", 1)), 1))
    assert sales(server) == [("b", 1)]


def test_a_new_column_is_added(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    wider = rows(("b", 2)).append_column("note", pa.array(["new"]))
    mirror.apply(step(wider, 2, 1, schema=pa.schema([*PLAIN, ("note", pa.string())])))
    assert server.ask("SELECT shop, note FROM sales ORDER BY 1") == [("a", None), ("b", "new")]


def test_a_column_that_was_dropped_is_not_made_up(server: Server, mirror: PostgresMirror) -> None:
    """The rows that do not change would have no values in it."""
    mirror.apply(step(rows(("a", 1), ("b", 2)), 1))
    mirror.close()
    server.ask("ALTER TABLE sales DROP COLUMN total")
    lost = "has lost the column total; to fill it again from the first row: .*publication reset"
    with pytest.raises(SinkRefusalError, match=lost):
        mirror.apply(step(rows(("b", 3)), 2, 1))
    reset(sink_of(server), CONTEXT)
    mirror.apply(step(rows(("a", 1), ("b", 3)), 2))
    assert sales(server) == [("a", 1), ("b", 3)]


def test_a_column_that_left_and_came_back_is_new(server: Server, mirror: PostgresMirror) -> None:
    few = pa.schema([("shop", pa.string())])
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("ALTER TABLE sales DROP COLUMN total")
    mirror.apply(step(rows(("b", 2)).drop_columns("total"), 2, 1, schema=few))
    mirror.apply(step(rows(("c", 3)), 3, 2))
    assert sales(server) == [("a", None), ("b", None), ("c", 3)]


def test_positions_of_an_earlier_version_go_on(server: Server, mirror: PostgresMirror) -> None:
    """It did not keep which columns it had written."""
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask("ALTER TABLE headgate_publications DROP COLUMN columns")
    assert mirror.held() == version(1)
    mirror.apply(step(rows(("b", 2)), 2, 1))
    assert server.ask("SELECT columns FROM headgate_publications") == [([KEY, "shop", "total"],)]
    server.ask("ALTER TABLE headgate_publications DROP COLUMN columns")
    reset(sink_of(server), CONTEXT)
    mirror.apply(step(rows(("c", 3)), 3))
    assert sales(server) == [("c", 3)]


def test_a_table_has_one_publication(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    other = SinkContext("shop", "others", CONTEXT.storage)
    second = PostgresMirror(sink_of(server), other)
    with pytest.raises(SinkRefusalError, match="belongs to the publication sales of shop"):
        second.held()
    with pytest.raises(SinkRefusalError, match="belongs to the publication sales of shop"):
        reset(sink_of(server), other)
    assert sales(server) == [("a", 1)]


def test_keys_are_a_unique_index(server: Server) -> None:
    with closing(PostgresMirror(sink_of(server, keys=("total", "shop")), CONTEXT)) as found:
        found.apply(step(rows(("a", 1)), 1))
    ((index,),) = server.ask(
        "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%headgate_keys'"
    )
    assert "UNIQUE" in index
    assert "(total, shop)" in index
    reset(sink_of(server), CONTEXT)
    few = PostgresMirror(sink_of(server, keys=("total",)), CONTEXT)
    with pytest.raises(SinkRefusalError, match="add shop to the keys"):
        few.apply(step(rows(("a", 1)), 1))


_INDEXES = "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%headgate_keys' ORDER BY 1"


def _keyed(server: Server, keys: tuple[str, ...], difference: Difference, **more: Any) -> None:
    sink = sink_of(server, keys=keys, **more)
    context = SinkContext("shop", sink.table, CONTEXT.storage)
    with closing(PostgresMirror(sink, context)) as found:
        found.apply(replace(difference, keys=keys))


def _several(*values: tuple[str, int]) -> pa.Table:
    keys = [f"{shop}{total}".encode() for shop, total in values]
    return rows(*values).set_column(0, KEY, pa.array(keys, pa.binary()))


@pytest.mark.parametrize("is_old", [False, True])
def test_keys_can_change(server: Server, is_old: bool) -> None:
    """In both directions, and also where an earlier version has named the index."""
    _keyed(server, ("shop",), step(_several(("a", 1)), 1))
    if is_old:
        ((name,),) = server.ask("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%_keys'")
        server.ask(f"ALTER INDEX {name} RENAME TO sales_headgate_keys")
    whole = replace(step(_several(("a", 1), ("a", 2)), 2, 1), gone=None)
    _keyed(server, ("shop", "total"), whole)
    assert sales(server) == [("a", 1), ("a", 2)]
    ((index,),) = server.ask(_INDEXES)
    assert index.endswith("(shop, total)")
    _keyed(server, ("shop",), replace(step(_several(("a", 2)), 3, 2), gone=None))
    assert sales(server) == [("a", 2)]
    ((index,),) = server.ask(_INDEXES)
    assert index.endswith("(shop)")
    _keyed(server, (), step(_several(("a", 3)), 4, 3))
    assert server.ask(_INDEXES) == []


def test_an_index_of_the_same_keys_stays(server: Server) -> None:
    _keyed(server, ("shop",), step(rows(("a", 1)), 1))
    before = server.ask("SELECT oid FROM pg_class WHERE relname LIKE '%_keys'")
    _keyed(server, ("shop",), step(rows(("b", 2)), 2, 1))
    assert server.ask("SELECT oid FROM pg_class WHERE relname LIKE '%_keys'") == before


def test_a_reset_drops_the_index_of_the_keys_too(server: Server) -> None:
    _keyed(server, ("shop",), step(rows(("a", 1)), 1))
    reset(sink_of(server), CONTEXT)
    assert server.ask(_INDEXES) == []


def test_each_table_gets_its_index(server: Server) -> None:
    """Also where long names begin alike, and where a renamed table has kept its index."""
    tables = [f"{'x' * 62}{end}" for end in "ab"]
    for table in tables:
        _keyed(server, ("shop",), step(rows(("a", 1)), 1), table=table)
    server.ask(f"ALTER TABLE {tables[0]} RENAME TO kept; DELETE FROM headgate_publications")
    _keyed(server, ("shop",), step(rows(("a", 1)), 1), table=tables[0])
    found = server.ask("SELECT tablename FROM pg_indexes WHERE indexname LIKE '%headgate_keys'")
    assert sorted(name for (name,) in found) == ["kept", *tables]


@pytest.mark.parametrize("place", ["postgres.copied", "postgres.merged"])
def test_two_drivers_write_each_row_once(
    server: Server, mirror: PostgresMirror, place: str
) -> None:
    """The second one comes while the first is between its rows and its commit."""
    mirror.apply(step(rows(("a", 1)), 1))
    said: list[str] = []

    def second() -> None:
        with closing(PostgresMirror(sink_of(server), CONTEXT)) as other:
            try:
                other.apply(step(rows(("a", 2)), 2, 1))
            except SinkRefusalError as error:
                said.append(str(error))

    thread = threading.Thread(target=second)

    def begin(name: str) -> None:
        if name == place and not thread.ident:
            thread.start()
            _until_locked(server)

    with passing(begin):
        mirror.apply(step(rows(("a", 2)), 2, 1))
    thread.join()
    assert said == [
        "another driver has written to public.sales meanwhile; this one goes on from there"
    ]
    assert sales(server) == [("a", 2)]


def _until_locked(server: Server) -> None:
    while not server.ask("SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass


def test_both_begin(server: Server) -> None:
    with (
        closing(PostgresMirror(sink_of(server), CONTEXT)) as one,
        closing(PostgresMirror(sink_of(server), CONTEXT)) as two,
    ):
        one.apply(step(rows(("a", 1)), 1))
        with pytest.raises(SinkRefusalError, match="another driver has written"):
            two.apply(step(rows(("a", 1)), 1))
    assert sales(server) == [("a", 1)]


@pytest.mark.slow
def test_it_goes_on_after_the_server_has_crashed(server: Server, mirror: PostgresMirror) -> None:
    mirror.apply(step(rows(("a", 1)), 1))

    def crash(name: str) -> None:
        if name == "postgres.merged":
            server.stop()

    with passing(crash), pytest.raises(psycopg2.Error):
        mirror.apply(step(rows(("a", 2)), 2, 1))
    with pytest.raises(psycopg2.Error) as away:
        mirror.held()
    said = mirror.failure(away.value) or ""
    assert said.startswith("public.sales in PostgreSQL does not take rows: ")
    assert PASSWORD not in said
    server.start()
    assert mirror.held() == version(1)
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


@pytest.mark.slow
def test_a_server_that_hangs_is_left(
    server: Server, mirror: PostgresMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.sinks.postgres.mirror.ANSWER", 0.5)
    mirror.apply(step(rows(("a", 1)), 1))
    stopped = server.pids
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(psycopg2.Error):
            mirror.held()
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


def test_it_goes_on_once_it_may_write(server: Server) -> None:
    server.ask("DROP ROLE IF EXISTS writer")
    server.ask(
        f"CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'; GRANT ALL ON SCHEMA public TO writer"
    )
    sink = sink_of(server, url=server.url.replace("airflow:", "writer:"))
    with closing(PostgresMirror(sink, CONTEXT)) as found:
        found.apply(step(rows(("a", 1)), 1))
        server.ask("ALTER TABLE sales OWNER TO airflow; REVOKE ALL ON sales FROM writer")
        with pytest.raises(psycopg2.Error) as refused:
            found.apply(step(rows(("a", 2)), 2, 1))
        assert "permission denied" in (found.failure(refused.value) or "")
        server.ask("ALTER TABLE sales OWNER TO writer")
        found.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]
    server.ask("DROP OWNED BY writer; DROP ROLE writer")


@pytest.mark.slow
def test_it_goes_on_once_the_disk_has_room(server: Server, tmp_path: Path) -> None:
    """A tablespace on a small disk of its own."""
    small = Path("/dev/shm") / f"headgate-{os.getpid()}"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", small], check=False, capture_output=True
    )
    if mounted.returncode:
        small.rmdir()
        pytest.skip("this machine lets nobody mount a disk")
    try:
        if os.geteuid() == 0:
            shutil.chown(small, "postgres")
        place = small / "space"
        place.mkdir()
        shutil.chown(place, "postgres")
        server.ask_alone(f"CREATE TABLESPACE small LOCATION '{place}'")
        server.ask(f"CREATE TABLE sales ({KEY} bytea PRIMARY KEY) TABLESPACE small")
        with closing(PostgresMirror(sink_of(server), CONTEXT)) as found:
            found.apply(step(rows(("a", 1)), 1))
            many = rows(*((f"{i}-{os.urandom(500).hex()}", i) for i in range(5_000)))
            with pytest.raises(psycopg2.Error) as full:
                found.apply(step(many, 2, 1))
            assert "No space left" in (found.failure(full.value) or "")
            assert sales(server) == [("a", 1)]
            subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
            found.apply(step(many, 2, 1))
            assert len(sales(server)) == 5_001
        server.ask("DROP TABLE sales")
        server.ask_alone("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", small], check=True)
        small.rmdir()


def test_a_wrong_password_is_not_told(server: Server) -> None:
    sink = sink_of(server, url=server.url.replace(PASSWORD, "wrong-secret"))
    with closing(PostgresMirror(sink, CONTEXT)) as found:
        with pytest.raises(psycopg2.Error) as refused:
            found.held()
        said = found.failure(refused.value) or ""
    assert "password authentication failed" in said
    assert "wrong-secret" not in said
    assert "wrong-secret" not in repr(sink)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://ann:hunter22@db/shop", "has a password; write"),
        ("postgresql://db/shop?password=hunter22", "has a password; write"),
        ("mysql://db/shop", "is not an address such as"),
        ("postgresql://db:port/shop", "is not an address such as"),
    ],
)
def test_addresses(url: str, problem: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(f"postgres: {{url: '{url}', table: a}}")
    assert problem in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("password", ["p@ss-hunter22", "1/hunter22", "1?hunter22", "1#hunter22"])
def test_a_password_that_must_be_encoded(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    """Messages of the server would show what they take for its name or the database."""
    monkeypatch.setenv("PG", password)
    with pytest.raises(DeclarationError) as refused:
        declared("postgres: {url: 'postgresql://ann:${env:PG}@db/shop', table: a}")
    assert "encode @ in the user or the password as %40" in str(refused.value)
    assert "hunter22" not in str(refused.value)


def test_an_encoded_password_and_a_user_in_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG", "p%40ss%2Fhunter22")
    for url in ("ann:${env:PG}@db/shop", "db/shop?user=ann@corp&password=${env:PG}"):
        declared(f"postgres: {{url: 'postgresql://{url}', table: a}}")


def test_the_package_is_asked_for_by_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.sinks.postgres.kind.find_spec", lambda name: None)
    (publication,) = declared("postgres: {url: 'postgresql://db/shop', table: a}").publish.values()
    with pytest.raises(NoPackageError) as missing:
        SINKS["postgres"].writer(publication.sink, CONTEXT)
    assert missing.value.remedy == 'install it: pip install "headgate[postgres]"'


@pytest.mark.slow
def test_a_declaration_needs_no_package() -> None:
    code = (
        "import sys; from tests.support.sinks import declared\n"
        "declared(\"postgres: {url: 'postgresql://db/shop', table: a}\")\n"
        "assert 'psycopg2' not in sys.modules"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": path})


def test_connections_have_bounds() -> None:
    assert connecting.CONNECT < connecting.ANSWER < connecting.WRITE
