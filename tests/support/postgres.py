"""A real PostgreSQL for tests, from the system's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.process_tree.ports import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_USER, _PASSWORD = "airflow", "not-for-logs"
_SERVER = "postgres"  # the user that it runs as, where we are root


def program(name: str) -> str | None:
    places = os.pathsep.join(map(str, [*reversed(_PLACES), os.environ.get("PATH", "")]))
    return shutil.which(name, path=places)


is_there = program("initdb") is not None


@contextmanager
def running_postgres() -> Iterator[str]:
    """Yields the address of an empty database on 127.0.0.1, on a free port, which asks for a
    password."""
    # Not under a test's folder: those are closed to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="postgres-") as place:
        folder, port = Path(place), free_port()
        secret, data = folder / "password", folder / "data"
        secret.write_text(_PASSWORD)
        if os.geteuid() == 0:
            for each in (folder, secret):
                shutil.chown(each, _SERVER)
        kept = ("-U", _USER, f"--pwfile={secret}", "-A", "scram-sha-256", "-E", "UTF8")
        _run("initdb", "-D", data, *kept)
        listen = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        _run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", listen, "start")
        try:
            yield f"postgresql://{_USER}:{_PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            _run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


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
