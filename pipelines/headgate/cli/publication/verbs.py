"""``headgate publication list | reset | letters | resend | discard``."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.named import named
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond
from headgate.cli.publication.letters import Name, discard, letters, resend
from headgate.cli.rows import cells
from headgate.commands import pipeline_command
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline, Publication
from headgate.errors import HeadgateError, UsageError
from headgate.graph.graph import graph_of
from headgate.sinks.contract import SINKS, SinkContext, SinkRefusalError
from headgate.sinks.letters import dead_letters
from headgate.storage.layout import Layout
from headgate.supervision.job_state import probe
from headgate.tables.payloads.publication import PublicationPayload
from headgate.tables.table import Table

app = typer.Typer(help="What is published, and how far.", no_args_is_help=True)
for verb in (letters, resend, discard):
    app.command(verb.__name__)(verb)


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
