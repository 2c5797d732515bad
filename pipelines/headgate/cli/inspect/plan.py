"""``headgate plan``: checks a declaration; shows what would run and what changes."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.deployment_screen import as_dict, show
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import Shown, respond
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe
from headgate.declaration.plan import plan as planned
from headgate.errors import HeadgateError
from headgate.jobs.refusing import require_apart
from headgate.savepoints.declarations import kept
from headgate.savepoints.deployment import Deployment, deployment
from headgate.storage.layout import Layout
from headgate.supervision.job_state import probe


def plan(
    pipeline: PipelineName,
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Print the declaration that the tables were made from."),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Check a declaration; show what would run and what changes.

    Shows tables, schemas, windows and state. For existing tables, shows what a start does with
    each.
    """
    declared, layout = declaration.opened(pipeline, root)
    require_apart(declared, layout)
    found = deployment(layout, declared)
    if deployed:
        _print_deployed(layout, declared, found, json=json)
        return
    shown: list[Shown] = [describe(declared)]
    if found.action != "new":
        runs = any(job.is_alive for job in probe(layout, datetime.now(UTC)))
        shown += [lambda: show(found, root), *next_commands(found, runs=runs)]
    respond(json, planned(declared) | {"deployed": as_dict(found)}, *shown)


def _print_deployed(layout: Layout, declared: Pipeline, found: Deployment, *, json: bool) -> None:
    """Print the text unchanged, with comments and placeholders. Raises HeadgateError if
    the tables were made from several declarations, SavepointError."""
    if not found.declaration:
        raise HeadgateError(
            f"no declaration is kept that all tables under {layout.storage.root} were made from",
            remedy=f"take it from your version control, and see: {pipeline_command('plan')}",
        )
    text = kept(layout, found.declaration, beside=declared.file).text
    document = {"pipeline": declared.name, "digest": found.declaration, "text": text}
    respond(json, document, lambda: sys.stdout.write(text))


def next_commands(found: Deployment, *, runs: bool) -> list[str]:
    if found.action == "refuse":
        return ["read the source into a root of its own:", command("run", "--root", NEW_ROOT)]
    if found.action == "resume" and runs:
        changed = f"it runs; settings that change no table are used after: {command('restart')}"
        return [changed, command("status")]
    goes_on = command("run" if found.action == "resume" else "upgrade")
    if not any(plan.late_again for plan in found.tables):
        return [goes_on]
    return [goes_on, f"afterwards, the rows that are late again: {command('late list')}"]
