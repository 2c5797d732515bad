"""A real PostgreSQL for tests, from the system's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg2

from headgate.machine.process_tree.ports import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
USER, PASSWORD = "airflow", "not-for-logs"
_SERVER = "postgres"  # the user that it runs as if this process is root


def program(name: str) -> str | None:
    places = os.pathsep.join(map(str, [*reversed(_PLACES), os.environ.get("PATH", "")]))
    return shutil.which(name, path=places)


is_there = program("initdb") is not None


class Server:
    """A PostgreSQL on 127.0.0.1, on a free port, which asks for a password. ``url`` is the address
    of its empty database. It can be stopped and started again."""

    def __init__(self, folder: Path, *, place: Path | None = None) -> None:
        """``place`` is the folder of its data, by default in ``folder``, which has all other
        files."""
        self._folder, self._data, self.port = folder, place or folder / "data", free_port()
        self.url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            for each in (folder, secret, *([place] if place else [])):
                shutil.chown(each, _SERVER)
        kept = ("-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256", "-E", "UTF8")
        _run("initdb", "-D", self._data, *kept)

    def start(self) -> None:
        listen = "-c listen_addresses=127.0.0.1 -c fsync=off "
        listen += f"-c port={self.port} -c unix_socket_directories={self._folder}"
        log = self._folder / "log"
        _run("pg_ctl", "-D", self._data, "-w", "-l", log, "-o", listen, "start")

    def stop(self) -> None:
        """End it at once, as a crash does: it recovers at its next start."""
        _run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    @property
    def pids(self) -> list[int]:
        """The ids of its processes, the main process first."""
        first = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        return [first, *(child.pid for child in psutil.Process(first).children())]

    def ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement, commit it, and return its rows."""
        with (
            closing(psycopg2.connect(self.url)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        """Remove all tables."""
        self.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Within the block, other sessions wait for the table."""
        with closing(psycopg2.connect(self.url)) as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table}")
            yield

    def ask_alone(self, sql: str) -> None:
        """Run a statement that must not be in a transaction."""
        with closing(psycopg2.connect(self.url)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)


@contextmanager
def running_server(place: Path | None = None) -> Iterator[Server]:
    # Not under a test's folder: the user that the server runs as cannot access it.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Server(Path(folder), place=place)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def running_postgres() -> Iterator[str]:
    """Yields the address of an empty database."""
    with running_server() as server:
        yield server.url


def _run(name: str, *arguments: object) -> None:
    found = program(name)
    assert found is not None
    # The server refuses to run as root.
    as_user = ["runuser", "-u", _SERVER, "--"] if os.geteuid() == 0 else []
    subprocess.run(
        [*as_user, found, *map(str, arguments)],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
