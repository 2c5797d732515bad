"""A real server, a table of sales, and steps from one version to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from headgate.flow.publish.sinks.postgres.declared import PostgresSink
from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror
from headgate.flow.publish.sinks.writers import KEY, MirrorVersion, SinkContext, VersionDifference
from headgate.lake.storage.files import Storage
from tests.support.postgres import PASSWORD, Server, running_server
from tests.support.waiting import wait_until

CONTEXT = SinkContext("shop", "sales", Storage("/nowhere"))
PLAIN = pa.schema([("shop", pa.string()), ("total", pa.int64())])


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _empty(server: Server) -> None:
    server.empty()


def sink_of(server: Server, **more: Any) -> PostgresSink:
    written = server.url.replace(PASSWORD, "${env:PG}")
    return PostgresSink(
        **{"url": server.url, "written": written, "schema": "public", "table": "sales"} | more
    )


def version(number: int) -> MirrorVersion:
    return MirrorVersion("log", number, f"files-{number}", number)


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
) -> VersionDifference:
    if less is None and after is not None:
        less = gone()
    before = None if after is None else version(after)
    return VersionDifference([table], less, schema, ("shop",), before, version(upto))


def sales(server: Server) -> list[tuple[Any, ...]]:
    return sorted(server.ask("SELECT shop, total FROM sales"))


@pytest.fixture
def mirror(server: Server) -> Iterator[PostgresMirror]:
    with closing(PostgresMirror(sink_of(server), CONTEXT)) as found:
        yield found


def until_locked(server: Server) -> None:
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
    wait_until(lambda: server.ask(waiting), "nobody waits for a lock", 30)
