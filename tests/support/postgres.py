"""A real PostgreSQL for tests, from the system's package."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_USER, _PASSWORD = "airflow", "not-for-logs"


def program(name: str) -> str | None:
    places = os.pathsep.join(map(str, [*reversed(_PLACES), os.environ.get("PATH", "")]))
    return shutil.which(name, path=places)


is_there = program("initdb") is not None


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """Yields the address of an empty database on 127.0.0.1, on a free port, which asks for a
    password."""
    folder.mkdir(parents=True)
    secret = folder / "password"
    secret.write_text(_PASSWORD)
    _open_to_server(folder)
    data, port = folder / "data", _free_port()
    _run(
        "initdb", "-D", data, "-U", _USER, f"--pwfile={secret}", "-A", "scram-sha-256", "-E", "UTF8"
    )
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
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run(
        [*as_user, found, *map(str, arguments)],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )


def _open_to_server(folder: Path) -> None:
    """Its user must get through to a folder that is this user's."""
    if os.geteuid() != 0:
        return
    shutil.chown(folder, "postgres")
    shutil.chown(folder / "password", "postgres")
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o001)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
