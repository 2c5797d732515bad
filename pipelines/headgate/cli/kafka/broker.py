"""``headgate kafka up | down``: a broker for development."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from headgate import exit_codes
from headgate.broker import FOLDER, running
from headgate.broker.client import metadata
from headgate.cli.driving import on_signals, require_java
from headgate.cli.options import DEFAULT_ROOT, Json, Root
from headgate.cli.output import respond
from headgate.commands import rendered, shell_command
from headgate.errors import HeadgateError
from headgate.jars import LockSet, cache_folder, fetch, locked
from headgate.jars.cache import problems

PORT = 9092


def up(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help=f"{PORT} if left out; 0 for any that is free."
        ),
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run it here, until Ctrl-C.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Start a broker on 127.0.0.1. Its topics are kept under the root until they are deleted."""
    folder = broker_folder(root)
    if (there := running.running(folder)) is not None:
        if port not in (None, 0, int(there.servers.rpartition(":")[2])) or foreground:
            raise HeadgateError(
                f"a broker runs already at {there.servers} (process {there.pid})",
                remedy=shell_command("kafka down"),
                code=exit_codes.LEASE_HELD,
            )
        _await(there.servers)
        _respond(there.servers, there.pid, root, json, already=True)
        return
    _prepare()
    _run(folder, PORT if port is None else port, foreground, root, json)


def _prepare() -> None:
    """Check Java, and fetch the jars the first time."""
    require_java()
    if missing := problems(cache_folder(), locked(LockSet.KAFKA)):
        print(f"fetching {len(missing)} jars of the broker, once …", file=sys.stderr)
    fetch(LockSet.KAFKA)


def _run(folder: Path, port: int, foreground: bool, root: str, json: bool) -> None:
    if not foreground:
        broker = running.start(folder, port, detached=True)
        _respond(broker.servers, broker.pid, root, json)
        return
    with running.start(folder, port) as broker, on_signals() as asked:
        _respond(broker.servers, broker.pid, root, json)
        while not asked:
            time.sleep(0.2)
            if not broker.is_alive:
                if broker.ended_well:
                    return
                raise broker.failure()


def _await(servers: str) -> None:
    """Wait for a broker that another process has just started."""
    metadata(servers, running.UP_WITHIN)


def _respond(
    servers: str, pid: int | None, root: str, json: bool, *, already: bool = False
) -> None:
    folder = str(broker_folder(root))
    respond(
        json,
        {"servers": servers, "pid": pid, "folder": folder, "already": already},
        f"a broker runs {'already ' * already}at {servers} (process {pid})",
        rendered(shell_command("kafka topics", "--create", "bids", "--partitions", "2")),
        rendered(shell_command("kafka produce", "bids")),
        rendered(shell_command("kafka consume", "bids")),
        rendered(shell_command("kafka down")),
    )


def down(root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Stop the broker that `up` started, and wait until it has ended."""
    ended = running.end(broker_folder(root))
    message = f"no broker runs in {broker_folder(root)}"
    if ended is not None:
        message = f"the broker at {ended.servers} has ended; its topics are kept"
    respond(json, {"stopped": ended and ended.pid}, message)


def broker_folder(root: str) -> Path:
    return Path(root) / FOLDER


def servers_of(given: str | None, root: str) -> str:
    if given is not None:
        return given
    there = running.running(broker_folder(root))
    if there is None:
        raise HeadgateError(
            f"no broker runs in {broker_folder(root)}",
            remedy=f"{shell_command('kafka up')}, or name another with --servers",
        )
    return there.servers
