"""``headgate plan``: checks a declaration; shows what would run and what changes. What a start does
with existing tables, as text and as JSON, for `upgrade`, too."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import Shown, console, grid, respond
from headgate.cli.rows import cells
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe
from headgate.declaration.plan import plan as planned
from headgate.declaration.quantities import plural
from headgate.driver.refusing import require_apart
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import kept_declaration
from headgate.history.savepoints.deployment import Deployment, deployment_of
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import probe

COLOUR = {"rebuild": "yellow", "reread": "yellow", "refuse": "red"}
COLOUR |= dict.fromkeys(("new", "extend"), "green")
MEANINGS = {
    "resume": "resume: every table continues from its position",
    "extend": "extend: columns get new fields, null in what was read before; nothing is rebuilt",
    "rebuild": "rebuild: the tables below are rebuilt, each from the table above it",
    "reread": "rebuild all: everything is read again from the source, which still holds it",
    "refuse": "refuse: bronze must be rebuilt, but the source no longer has all that was read",
}


def deployment_document(found: Deployment) -> dict[str, Any] | None:
    if found.action == "new":
        return None
    return {
        "action": found.action,
        "engine": found.engine,
        "engine_changed": found.engine_changed,
        "tables": {p.table: {"action": p.action, "reasons": list(p.reasons)} for p in found.tables},
        "loads": [asdict(each) for each in found.loads],
    }


def show_deployment(found: Deployment, root: str) -> None:
    out = console()
    out.print()
    meaning = MEANINGS[found.action]
    if found.engine_changed:
        meaning = f"{meaning}; after a savepoint, since {found.engine} wrote them"
    out.print(f"deployed under {root}: {meaning}", markup=False, soft_wrap=True)
    table = grid("", "table", "", "because")
    for each in found.tables:
        action = f"[{COLOUR.get(each.action, 'dim')}]{each.action}[/]"
        table.add_row(*cells(each.table), action, *cells("; ".join(each.reasons)))
    out.print(table)
    if found.loads and found.action == "reread":
        loads = plural(len(found.loads), "load")
        out.print(f"then what bronze has of {loads} of history is read again:", markup=False)
        for load in found.loads:
            out.print(f"  {load.id}  {load.what}", markup=False, soft_wrap=True)


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
    found = deployment_of(layout, declared)
    if deployed:
        _print_deployed(layout, declared, found, json=json)
        return
    shown: list[Shown] = [describe(declared)]
    if found.action != "new":
        runs = any(job.is_alive for job in probe(layout, datetime.now(UTC)))
        shown += [lambda: show_deployment(found, root), *next_commands(found, runs=runs)]
    respond(json, planned(declared) | {"deployed": deployment_document(found)}, *shown)


def _print_deployed(layout: Layout, declared: Pipeline, found: Deployment, *, json: bool) -> None:
    """Print the text unchanged, with comments and placeholders. Raises HeadgateError if
    the tables were made from several declarations, SavepointError."""
    if not found.declaration:
        raise HeadgateError(
            f"no declaration is kept that all tables under {layout.storage.root} were made from",
            remedy=f"take it from your version control, and see: {pipeline_command('plan')}",
        )
    text = kept_declaration(layout, found.declaration, beside=declared.file).text
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
