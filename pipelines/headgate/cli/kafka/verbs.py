"""``headgate kafka up | down | topics | produce | consume``: a broker for development, and
a view of the topics of any broker."""

from __future__ import annotations

import json as jsons
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Annotated, BinaryIO

import typer

from headgate.broker import consuming, producing
from headgate.broker import topics as all_topics
from headgate.broker.consuming import Start
from headgate.cli.kafka.broker import down, servers_of, up
from headgate.cli.options import DEFAULT_ROOT, Json, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells, shown
from headgate.commands import shell_command
from headgate.declaration.quantities import plural
from headgate.errors import UsageError
from headgate.storage.places import at_home

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
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on as more come, until Ctrl-C.")
    ] = False,
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
