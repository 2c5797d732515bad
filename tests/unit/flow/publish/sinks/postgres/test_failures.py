"""Two drivers, and a server that crashes, hangs or is full."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from headgate.flow.publish.sinks.postgres.connecting import merging_takes
from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror
from headgate.flow.publish.sinks.writers import KEY, SinkRefusalError
from tests.support.failing import passing
from tests.support.postgres import PASSWORD, Server, is_there
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


@pytest.mark.parametrize("place", ["postgres.copied", "postgres.merged"])
def test_two_drivers_write_each_row_once(
    server: Server, mirror: PostgresMirror, place: str
) -> None:
    """The second driver starts after the first has written its rows and before it commits."""
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
            until_locked(server)

    with passing(begin):
        mirror.apply(step(rows(("a", 2)), 2, 1))
    thread.join()
    assert said == [
        "another driver has written to public.sales meanwhile; this one goes on from there"
    ]
    assert sales(server) == [("a", 2)]


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
    mirror.apply(step(rows(("a", 1)), 1))
    stopped = server.pids
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("headgate.flow.publish.sinks.postgres.mirror.ANSWER", 0.5)
            with pytest.raises(psycopg2.Error):
                mirror.held()
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


def test_a_merge_has_the_time_that_its_rows_need(
    server: Server, mirror: PostgresMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a long load would be begun again and again, and never end."""
    for module in ("connecting", "mirror"):
        monkeypatch.setattr(f"headgate.flow.publish.sinks.postgres.{module}.WRITE", 2.0)
    monkeypatch.setattr("headgate.flow.publish.sinks.postgres.connecting.SLOWEST", 0.1)
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(1.2); RETURN NEW; END'; "
        "CREATE TRIGGER slow BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION slow()"
    )
    mirror.apply(step(rows(("a", 2), ("b", 2)), 2, 1))
    assert sales(server) == [("a", 2), ("b", 2)]


def test_the_time_of_a_merge_grows_with_its_rows() -> None:
    assert [merging_takes(rows) for rows in (0, 600_000, 6_000_000)] == [600, 600, 6_000]


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
