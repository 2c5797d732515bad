"""``headgate plan``: check a declaration, say what it would run, and what changes by it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from headgate.cli import declaration, exit_codes
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import console, grid, print_json
from headgate.cli.rows import cells
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.savepoints.deployment import Deployment

COLOUR = {"rebuild": "yellow", "reread": "yellow", "refuse": "red", "new": "green"}
MEANINGS = {
    "resume": "resume: every table goes on where it is",
    "rebuild": "rebuild: the tables below are built anew, from the table above them",
    "reread": "rebuild all: everything is read again from the source, which still holds it",
    "refuse": "refuse: bronze cannot be built anew, the source does not hold all that was read",
}


class NotKeptError(HeadgateError):
    """There is no one declaration that all tables were made from, or it is not kept."""

    exit_code: ClassVar[int] = exit_codes.DOES_NOT_BALANCE


def plan(
    pipeline: PipelineName,
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Print the declaration that the tables were made from."),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Check a declaration; say what would run and what changes.

    Tables, schemas, windows, state.

    Where tables are there already, say what becomes of each.
    """
    from headgate.declaration.plan import describe
    from headgate.declaration.plan import plan as planned
    from headgate.savepoints.deployment import deployment

    declared = declaration.load(pipeline)
    layout = Layout.of(root, declared.name)
    found = deployment(layout, declared)
    if deployed:
        _print_deployed(layout, declared, found, json=json)
        return
    if json:
        print_json(planned(declared) | {"deployed": as_dict(found)})
        return
    print(describe(declared))
    if found.verdict != "new":
        show(found, root)
        for line in next_commands(found, str(declared.file), root):
            print(line)


def _print_deployed(layout: Layout, declared: Pipeline, found: Deployment, *, json: bool) -> None:
    """As it was written, comments and placeholders too. Raises NotKeptError, SavepointError."""
    from headgate.savepoints.declarations import kept

    if not found.declaration:
        raise NotKeptError(
            f"no declaration is kept that all tables under {layout.storage.root} were made from",
            remedy=f"take it from your version control, and see: {pipeline_command('plan')}",
        )
    text = kept(layout, found.declaration, beside=declared.file).text
    if json:
        said = {"pipeline": declared.name, "digest": found.declaration, "text": text}
        print_json(said)
        return
    sys.stdout.write(text)


def as_dict(found: Deployment) -> dict[str, Any] | None:
    if found.verdict == "new":
        return None
    return {
        "verdict": found.verdict,
        "engine": found.engine,
        "engine_changed": found.engine_changed,
        "tables": {
            p.table: {"verdict": p.verdict, "reasons": list(p.reasons)} for p in found.tables
        },
    }


def show(found: Deployment, root: str) -> None:
    out = console()
    out.print()
    said = MEANINGS[found.verdict]
    if found.engine_changed:
        said = f"{said}; after a savepoint, since {found.engine} wrote them"
    out.print(f"deployed under {root}: {said}", markup=False, soft_wrap=True)
    table = grid("", "table", "", "because")
    for each in found.tables:
        verdict = f"[{COLOUR.get(each.verdict, 'dim')}]{each.verdict}[/]"
        table.add_row(*cells(each.table), verdict, *cells("; ".join(each.reasons)))
    out.print(table)


def next_commands(found: Deployment, file: str, root: str) -> list[str]:
    if found.verdict == "refuse":
        return ["read the source into a root of its own:", command("run", file, f"{root}-new")]
    if found.verdict in ("rebuild", "reread"):
        return [command("upgrade", file, root)]
    return [command("run", file, root)]
