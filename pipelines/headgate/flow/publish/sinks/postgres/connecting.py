"""Connections to PostgreSQL with a time limit for every wait, and messages about its errors.

This module and those that use it import psycopg2. ``kind.py`` imports them only when a driver runs
or a publication is reset, so a declaration can be read without the package.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg2
from psycopg2.errors import LockNotAvailable

from headgate.declaration.secrets import without
from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.postgres.url import secrets_in_url
from headgate.flow.publish.sinks.writers import SinkContext

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

CONNECT = 5  # seconds
ANSWER = 10.0
"""The timeout of a small statement, in seconds. A server that hangs is detected within this
time."""
WRITE = 600.0  # seconds for a statement that writes rows
SLOWEST = 1_000.0
"""Rows that a server merges in a second, at the least."""
LOCK_WAIT = "5s"  # readers queue behind a statement that waits for a lock
TURN = 60
"""The timeout of a publication that waits for others of the same database to create their tables,
in seconds."""


def connect(sink: PostgresSink, context: SinkContext) -> Connection:
    """A connection in UTC. Raises psycopg2.Error."""
    connection = psycopg2.connect(
        sink.url,
        connect_timeout=CONNECT,
        application_name=f"headgate/{context.pipeline}/{context.name}",
        tcp_user_timeout=int(ANSWER * 1000),
        keepalives_idle=int(ANSWER),
        client_encoding="utf8",
    )
    try:
        with time_limit(connection, ANSWER), connection, connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            cursor.execute("SET datestyle TO 'ISO, YMD'")
            cursor.execute("SET search_path TO pg_catalog, pg_temp")
            cursor.execute(f"SET lock_timeout TO '{LOCK_WAIT}'")
            cursor.execute(f"SET statement_timeout TO '{int(WRITE)}s'")
    except BaseException:
        connection.close()
        raise
    return connection


def merging_takes(rows: int) -> float:
    """The timeout of the statements that merge so many rows, in seconds."""
    return max(WRITE, rows / SLOWEST)


@contextmanager
def time_limit(connection: Connection, seconds: float) -> Iterator[None]:
    """Close the connection if the block takes longer than ``seconds``. Without this, the client
    library waits for ever for a server that has stopped and keeps its connections open."""

    def cut() -> None:
        # Use a second descriptor of the socket, because the library closes its own.
        with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def message_of(error: Exception, sink: PostgresSink) -> str | None:
    """A message with the first line of an error of PostgreSQL, without the secrets of the url; None
    for another error."""
    if not isinstance(error, psycopg2.Error):
        return None
    said = getattr(error.diag, "message_primary", None) or str(error).strip()
    first = said.splitlines()[0] if said else type(error).__name__
    if isinstance(error, LockNotAvailable):
        first += f": another session has locked it for {LOCK_WAIT}"
    secrets = secrets_in_url(sink.url, sink.written if sink.written != sink.url else None)
    return f"{sink.name} in PostgreSQL does not take rows: {without(secrets, first)}"
