"""``headgate kafka up | down | topics | produce | consume``: a broker for development, and
a view of the topics of any broker."""

from __future__ import annotations

import json as jsons
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from headgate import exit_codes
from headgate.cli.driving import on_signals, require_java
from headgate.cli.options import DEFAULT_ROOT, Follow, Json, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells, shown
from headgate.commands import rendered, shell_command
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError, UsageError
from headgate.lake.storage.places import at_home
from headgate.machine.jars import LockSet, cache_folder, fetch, locked
from headgate.machine.jars.cache import problems
from headgate.setup.broker import FOLDER, consuming, producing, running
from headgate.setup.broker import topics as all_topics
from headgate.setup.broker.client import metadata
from headgate.setup.broker.consuming import Start

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


app = typer.Typer(help="A Kafka broker to develop with, and its topics.", no_args_is_help=True)
app.command()(up)
app.command()(down)

Servers = Annotated[
    str | None,
    typer.Option(
        "--servers",
        metavar="HOST:PORT",
        help="The broker to talk to; the one that `kafka up` started if left out.",
    ),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]

# JSON does not escape these control characters, and a terminal would interpret them.
_OBEYED = re.compile("[\x7f-\x9f]")


@app.command("topics")
def topics(
    servers: Servers = None,
    create: Annotated[
        str | None, typer.Option("--create", metavar="NAME", help="First make a topic.")
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", min=1, max=10_000, help="Of the topic to make; 1 if left out."
        ),
    ] = None,
    delete: Annotated[
        str | None,
        typer.Option("--delete", metavar="NAME", help="First remove a topic with its records."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """List the topics, with the earliest and the latest offset of each partition."""
    if partitions is not None and create is None:
        raise typer.BadParameter("belongs to --create", param_hint="--partitions")
    if create is not None and create == delete:
        raise typer.BadParameter("is the same topic as --create", param_hint="--delete")
    there = servers_of(servers, root)
    if delete is not None:
        all_topics.delete(there, delete)
    if create is not None:
        all_topics.create(there, create, partitions or 1)
    found = all_topics.listing(there)
    table = grid("", "topic", "partition:", "earliest:", "latest:")
    for p in found:
        numbers = (p.partition, p.earliest, p.latest)
        table.add_row(*cells(p.topic, *("-" if n is None else str(n) for n in numbers)))
    shown = table if found else f"no topics at {there}"
    respond(json, {"servers": there, "partitions": [asdict(p) for p in found]}, shown)


@app.command("produce")
def produce(
    topic: Topic,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="- for stdin.", show_default=False)
    ] = "-",
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FIELD", help="Take each record's key from its JSON."),
    ] = None,
    servers: Servers = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Send a file to a topic, each line a record. Returns when all are acknowledged."""
    there = servers_of(servers, root)
    name = "stdin" if file == "-" else file
    at = [] if servers is None else ["--servers", servers]
    again = shell_command("kafka produce", *at, topic, *(["--key", key] if key else []))
    with _open(file) as lines:
        delivered = producing.produce(there, topic, producing.records(lines, key, name, again))
    counts = [{"partition": p, "delivered": n} for p, n in delivered.items()]
    total = sum(delivered.values())
    respond(
        json,
        {"topic": topic, "delivered": total, "partitions": counts},
        f"{topic}: {plural(total, 'record')} delivered",
        *(f"  partition {partition}: {count:,}" for partition, count in delivered.items()),
    )


@contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = at_home(file).open("rb")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}",
            remedy="name a file that can be read, or - for stdin",
        ) from error
    with opened:
        yield opened


@app.command("consume")
def consume(
    topic: Topic,
    start: Annotated[
        str, typer.Option("--from", metavar="WHERE", help="earliest, latest, or an offset.")
    ] = "earliest",
    most: Annotated[
        int | None, typer.Option("--max", min=1, help="End after so many records.")
    ] = None,
    follow: Follow = False,
    servers: Servers = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Print the committed records of a topic, each as a line of JSON."""
    count = 0
    records = consuming.consume(servers_of(servers, root), topic, _start(start), follow=follow)
    with suppress(KeyboardInterrupt):
        for count, record in enumerate(records, 1):
            text = jsons.dumps(consuming.as_document(record), ensure_ascii=False)
            print(_OBEYED.sub(lambda c: f"\\u{ord(c[0]):04x}", text), flush=follow)
            if count == most:
                break
    records.close()
    respond(json, {"topic": topic, "records": count})


def _start(text: str) -> Start:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    if not text.isdecimal():
        raise typer.BadParameter(
            f"{shown(text)}: earliest, latest, or an offset", param_hint="--from"
        )
    return int(text)
