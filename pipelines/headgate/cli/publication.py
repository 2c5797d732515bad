"""``headgate publication list | reset | letters | resend | discard``: what is published, and the
rows that a sink has refused permanently."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.declaration import named
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells
from headgate.commands import pipeline_command
from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline, Publication
from headgate.errors import HeadgateError, UsageError
from headgate.flow.publish.sinks.letters import DeadLetters, Letter, dead_letters
from headgate.flow.publish.sinks.writers import (
    NoLettersError,
    SinkAwayError,
    SinkContext,
    SinkRefusalError,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import probe

app = typer.Typer(help="What is published, and how far.", no_args_is_help=True)


@app.command("list")
def list_(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Show the publications: later commits of their tables, dead letters, and why one is stuck.

    Later commits come after the last one that was sent. They may have no rows to send.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    stuck = {
        name: found["why"]
        for job in probe(layout, datetime.now(UTC))
        for name, found in (job.stuck or {}).items()
    }
    refused = dead_letters(declared, layout)
    columns = ("publication", "from", "sink", "later commits:", "dead letters:", "stuck because")
    screen, shown = grid("", *columns), []
    for name, each in declared.publish.items():
        waiting = _waiting(declared, layout, each)
        table = f"{each.layer}.{each.table}"
        letters, why = refused[name], stuck.get(name)
        screen.add_row(*cells(name, table, each.kind, waiting, letters, why))
        found = {"waiting": waiting, "dead_letters": letters, "why": why}
        shown.append({"name": name, "sink": each.kind, **found})
    words = [] if shown else ["nothing is published"]
    respond(json, {"pipeline": declared.name, "publications": shown}, screen, *words)


@app.command("reset")
def reset(
    pipeline: PipelineName, name: Name, root: Root = DEFAULT_ROOT, json: Json = False
) -> None:
    """Remove the rows that a publication has written, so that the next run writes all again.

    For sinks that keep a table (PostgreSQL): also after another program has changed it.
    """
    declared, layout = declaration.opened(pipeline, root)
    found = named(declared.publish, name, f"{declared.name} has no publication")
    context = SinkContext(declared.name, name, layout.storage)
    try:
        done = SINKS[found.kind].reset(found.sink, context)
    except SinkRefusalError as error:
        raise HeadgateError(
            str(error), pipeline_command("publication list"), code=exit_codes.SOURCE
        ) from error
    if done is None:
        raise UsageError(
            f"publish {name}: what {found.kind} has taken cannot be taken back",
            remedy="a publication under another name begins with the first row",
        )
    respond(json, {"pipeline": declared.name, "publication": name, "done": done}, done)


def _waiting(declared: Pipeline, layout: Layout, publication: Publication) -> int:
    """The commits of the table after the last one that is published."""
    node = graph_of(declared)[PUBLICATION.path(publication.name)]
    source, position = (
        Table(layout.storage, path, pipeline=declared.name)
        for path in (node.upstream[0], node.path)
    )
    if not source.exists:
        return 0
    source.refresh()
    sent = PublicationPayload.of(position.refresh()).version if position.exists else 0
    return source.version - sent


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name below publish.", show_default=False)
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Only the letters whose id begins like this.", show_default=False),
]
_SHOWN = 12  # characters of an id


@app.command("letters")
def letters(
    pipeline: PipelineName, name: Name, root: Root = DEFAULT_ROOT, json: Json = False
) -> None:
    """Show the dead letters of a publication: rows that its sink has refused."""
    found = list(_letters(pipeline, name, root, needs_secrets=False)[0].all())
    rows = ((e.id[:_SHOWN], e.at, e.attempts, _table(e), e.why) for e in found)
    screen = grid("", "id", "at", "attempts:", "table", "refused because it", rows=rows)
    shown = [
        {"id": e.id, "at": e.at.isoformat(), "attempts": e.attempts, "why": e.why} for e in found
    ]
    respond(json, {"letters": shown}, screen, *([] if found else ["no dead letters"]))


@app.command("resend")
def resend(
    pipeline: PipelineName,
    name: Name,
    id_: Id = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Send dead letters once more, under their ids. Exit code 3 if one is refused again, or if the
    sink is away: then the others are not tried."""
    kept, publication = _letters(pipeline, name, root)
    meant = _require(kept, name, id_)
    sent, refused, away = 0, [], None
    for letter in kept.all(id_ or ""):
        try:
            why = SINKS[publication.kind].resend(publication.sink, letter)
        except SinkAwayError as error:
            away = str(error)
            break
        except NoLettersError:
            raise UsageError(
                f"{name} has another sink than when it kept these letters: {publication.kind} does "
                "not take them",
                pipeline_command("publication discard", name),
            ) from None
        if why is None:
            kept.remove(letter.id)
            sent += 1
        else:
            refused.append({"id": letter.id, "why": why})
    words = [f"{each['id'][:_SHOWN]} {each['why']}" for each in refused]
    left = len(meant) - sent - len(refused)
    document = {"sent": sent, "refused": refused, "left": left, "away": away}
    if away is not None:
        words.append(f"the sink {away}: {left:,} not sent; try again once it is back")
    respond(json, document, f"{sent:,} sent, {len(refused):,} refused again", *words)
    if refused or away is not None:
        raise typer.Exit(exit_codes.SOURCE)


@app.command("discard")
def discard(
    pipeline: PipelineName,
    name: Name,
    id_: Id = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Remove dead letters without sending them. The rows stay in their tables."""
    kept, _ = _letters(pipeline, name, root, needs_secrets=False)
    gone = _require(kept, name, id_)
    for each in gone:
        kept.remove(each)
    respond(json, {"discarded": len(gone)}, f"{len(gone):,} discarded")


def _letters(
    pipeline: str, name: str, root: str, *, needs_secrets: bool = True
) -> tuple[DeadLetters, Publication]:
    declared, layout = declaration.opened(pipeline, root, needs_secrets=needs_secrets)
    publication = named(declared.publish, name, f"{declared.name} has no publication")
    return DeadLetters(layout.storage, name), publication


def _require(kept: DeadLetters, name: str, id_: str | None) -> list[str]:
    """The ids of the selected letters. Raises UsageError if no letter has ``id_``."""
    found = kept.ids(id_ or "")
    if id_ is not None and not found:
        raise UsageError(f"no dead letter {id_!r}", pipeline_command("publication letters", name))
    return found


def _table(letter: Letter) -> str:
    return letter.headers.get("headgate-table", "")
