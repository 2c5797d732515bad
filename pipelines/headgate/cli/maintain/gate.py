"""``headgate gate``: gold tables whose rules hold versions back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.declaration import gold_table
from headgate.cli.options import DEFAULT_ROOT, GoldName, Json, PipelineName, Root, command
from headgate.cli.output import grid, respond
from headgate.cli.requesting import person
from headgate.cli.rows import cells, rows_shown
from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import HeadgateError, UsageError
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold, gate_name, holds
from headgate.insight.status.held_versions import (
    HeldVersion,
    held_version,
    reasons,
    rejectable,
    rejection,
)
from headgate.lake.storage.documents import Document, encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table

_SOON = "a running driver does it at once, else the next start"

app = typer.Typer(help="Gold tables that rules hold back.", no_args_is_help=True)

OfRebuild = Annotated[
    bool | None,
    typer.Option(
        "--rebuild/--current",
        help="Of the table's rebuild, or of the table that readers see. Default: the one held.",
        show_default=False,
    ),
]

Why = Annotated[str, typer.Option("--reason", help="Kept in the commit.")]


@app.command("status")
def status(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Show the gold tables that have rules, and why they are held.

    Exit code 10 if one is held.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    held = {hold.gate: hold for hold in holds(layout, declared)}
    found = {gate: held_version(layout, declared, hold) for gate, hold in held.items()}
    shown = []
    screen = grid("", "table", "suite", "batch:", "state")
    for name, table in declared.gold.items():
        if table.suite is None:
            continue
        gold = Table(layout.storage, GOLD.path(name), pipeline=declared.name)
        state = gold.refresh() if gold.exists else None
        n, told = state.n if state else 0, "open"
        if name in held:
            told = f"held since {held[name].since:%F %T}Z"
        screen.add_row(*cells(gold.name, table.suite.name, n, told))
        rebuild = held.get(gate_name(name, is_rebuild=True))
        if rebuild is not None:
            told = f"held since {rebuild.since:%F %T}Z"
            screen.add_row(*cells(rebuild.title, table.suite.name, rebuild.n, told))
        shown.append(
            {
                "table": gold.name,
                "suite": table.suite.name,
                "n": n,
                "held": _bounded(found[name]) if name in found else None,
                "rebuild": _bounded(found[rebuild.gate]) if rebuild is not None else None,
                "last": state and GoldPayload.of(state).gate,
            }
        )
    words = [] if shown else ["no gold table has expectations"]
    for hold in held.values():
        version = found[hold.gate]
        words += [f"{hold.title}: {version.what}, computed by {version.computed_by}"]
        words += [*(f"  {result}" for result in hold.failed)]
        words += next_steps(hold, is_rebuilt=_is_rebuilt(declared, layout, hold))
    respond(json, {"pipeline": declared.name, "gates": shown}, screen, *words)
    if held:
        raise typer.Exit(exit_codes.HELD)


@app.command("show")
def show(
    pipeline: PipelineName,
    table: GoldName,
    rebuild: OfRebuild = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show the rows of the held version that break rules, with the values that readers see.

    Rows that were released before are left out. A rule about the whole table has no rows.
    """
    declared, layout, held = _held(pipeline, root, table, rebuild)
    found, is_rebuilt = held_version(layout, declared, held), _is_rebuilt(declared, layout, held)
    document = {
        "pipeline": declared.name,
        "table": GOLD.path(held.table),
        "held": found.document(),
    }
    respond(
        json,
        document,
        f"{held.title}: {found.what}, held since {held.since:%F %T}Z",
        f"computed by {found.computed_by}",
        *why(held, declared.gold[held.table]),
        *([rows_shown(found.rows, "held")] if found.rows.rows else []),
        rows_count(found),
        *islice(next_steps(held, is_rebuilt=is_rebuilt), 1, None),
    )


@app.command("release")
def release(
    pipeline: PipelineName,
    table: GoldName,
    reason: Why,
    rebuild: OfRebuild = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Let the version that is held become visible, although it breaks rules.

    The commit keeps who did it, when and why. The rows that break rules hold no later version, as
    long as they do not change; see them with `gate show`. Rows that are new or have changed hold
    the table again. A rebuild may then be published.
    """
    declared, layout, held = _held(pipeline, root, table, rebuild)
    given = held.release(person(), reason, datetime.now(UTC))
    documents.release(layout, held.gate, given)
    what = held_version(layout, declared, held).what
    said = f"{held.title}: {what} may become visible"
    if held.log:
        said = f"{held.title} may be published"
    document = {"pipeline": declared.name, "table": GOLD.path(held.table), **given.document()}
    respond(json, document, f"{said}; {_SOON}", *(f"  {result}" for result in held.failed))


@app.command("reject")
def reject(
    pipeline: PipelineName,
    table: GoldName,
    reason: Why,
    rebuild: OfRebuild = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Give up the replay or the backfill that is held: the table goes on without it.

    The commit keeps who did it, when and why. A batch cannot be given up: its events are in silver.
    """
    declared, layout, held = _held(pipeline, root, table, rebuild)
    operation = rejectable(declared, layout, held)
    given = rejection(held, operation, person(), reason, datetime.now(UTC))
    documents.reject(layout, given)
    what = held_version(layout, declared, held).what
    said = f"{held.title}: {what} is given up; {_SOON}"
    document = {"pipeline": declared.name, **encoded(given), "table": GOLD.path(held.table)}
    respond(json, document, said)


@app.command("retry")
def retry(
    pipeline: PipelineName,
    table: GoldName,
    rebuild: OfRebuild = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Validate the held version now.

    Headgate itself tries again, at growing intervals.
    """
    declared, layout, held = _held(pipeline, root, table, rebuild)
    documents.ask_retry(layout, held.gate, datetime.now(UTC))
    said = f"{held.title}: a running driver validates it again at once"
    respond(json, {"pipeline": declared.name, "table": GOLD.path(held.table)}, said)


def _bounded(found: HeldVersion) -> Document:
    """With the first rows only: `gate show` has more of them."""
    return replace(found, rows=found.rows.first()).document()


def _is_rebuilt(declared: Pipeline, layout: Layout, hold: Hold) -> bool:
    """Whether a table and its rebuild are both held."""
    return sum(each.table == hold.table for each in holds(layout, declared)) > 1


def _held(
    pipeline: str, root: str, table: str, rebuild: bool | None
) -> tuple[Pipeline, Layout, Hold]:
    """Why a table, or its rebuild, is held. Raises HeadgateError if none of them is, or if both are
    and ``rebuild`` names none, and UsageError for a wrong name."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    name = gold_table(declared, table, gated=True).name
    found = [hold for hold in holds(layout, declared) if hold.table == name]
    asked = [hold for hold in found if rebuild in (None, bool(hold.log))]
    if not asked:
        title = f"the rebuild of {GOLD.path(name)}" if rebuild else GOLD.path(name)
        raise HeadgateError(f"{title} is not held", pipeline_command("gate status"))
    if len(asked) > 1:
        raise UsageError(
            f"{GOLD.path(name)} and its rebuild are held",
            remedy="name one of them: --rebuild, or --current",
        )
    return declared, layout, asked[0]


def why(hold: Hold, table: GoldTable) -> Iterator[str]:
    """The rules that hold a version: what was observed, and what each demands."""
    for result, asked in reasons(hold, table):
        yield f"  {result}"
        if asked is not None:
            yield f"    expected: {asked}"


def rows_count(found: HeldVersion) -> str:
    """How many rows break the rules."""
    is_counted = found.rows.total is not None
    return found.count + ("" if is_counted else "; too many to release them for later versions")


def next_steps(hold: Hold, *, is_rebuilt: bool) -> Iterator[str]:
    """The commands that end a hold. ``is_rebuilt``: the table and its rebuild are both held."""
    table = f"gold.{hold.table}"
    which = ["--rebuild"] if hold.log else ["--current"] if is_rebuilt else []
    yield command("gate show", table, *which)
    yield command("gate release", table, *which, "--reason", "WHY")
    if hold.is_of_operation:
        yield command("gate reject", table, "--reason", "WHY")
