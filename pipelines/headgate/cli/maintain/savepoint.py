"""``headgate savepoint create | list | show | verify | restore | delete``."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.options import (
    DEFAULT_ROOT,
    Json,
    PipelineName,
    Root,
    checked_root,
    command,
)
from headgate.cli.output import console, grid, print_json, respond
from headgate.cli.restoring import (
    print_passed_over,
    require_source_for,
    reread_only,
    restore_in_place,
)
from headgate.cli.rows import cells
from headgate.commands import NEW_ROOT
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural, size_text
from headgate.errors import HeadgateError
from headgate.history.savepoints import store, verify
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.savepoint import SavedSource, Savepoint
from headgate.history.savepoints.store import (
    UnreadableSavepoint,
    find_any_savepoint,
    find_savepoint,
    is_last_restorable,
    savepoints,
)
from headgate.history.savepoints.verify import damaged_today
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.state import time_of

app = typer.Typer(help="Savepoints of a pipeline: take one, go back to one.", no_args_is_help=True)

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="As `savepoint list` shows it, its beginning, or latest."),
]
Reread = Annotated[
    bool,
    typer.Option("--reread", help="Bronze goes back too, and the source is read again from there."),
]


@app.command("create")
def create_savepoint(
    pipeline: PipelineName,
    note: Annotated[str, typer.Option("--note", help="Shown in lists.")] = "",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Take a savepoint, whether the pipeline runs or not; nothing waits for it."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    began = time.monotonic()
    savepoint = store.create_savepoint(layout, declared, datetime.now(UTC), note)
    seconds = round(time.monotonic() - began, 3)
    respond(
        json,
        described(savepoint) | {"seconds": seconds},
        f"savepoint {savepoint.id}: batch {_batches(savepoint)}, {plural(savepoint.rows, 'row')} "
        f"({seconds} s)",
        command("savepoint restore", savepoint.id),
    )


@app.command("list")
def list_savepoints(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """List savepoints, the newest first."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = savepoints(layout)
    apart = _reread_only(declared, layout, *(e for e in found if isinstance(e, Savepoint)))
    listed = [described(each, reread_only=each.id in apart) for each in found]
    create = [] if found else [command("savepoint create")]
    document = {"pipeline": declared.name, "savepoints": listed}
    respond(json, document, lambda: show_list(declared, found, apart), *create)


@app.command("show")
def show_savepoint(
    pipeline: PipelineName, id_: Id = "latest", root: Root = DEFAULT_ROOT, json: Json = False
) -> None:
    """Show the version and the batch of each table, and how far the source was read."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    savepoint = find_savepoint(layout, id_)
    apart = bool(_reread_only(declared, layout, savepoint))
    tables = {path: vars(saved) for path, saved in savepoint.tables.items()}
    document = described(savepoint, reread_only=apart) | {"tables": tables}
    respond(json, document, lambda: show_one(savepoint, reread_only=apart))


@app.command("verify")
def verify_savepoint(
    pipeline: PipelineName,
    id_: Id = "latest",
    read: Annotated[
        bool, typer.Option("--read", help="Also read every page of every file.")
    ] = False,
    reread: Annotated[
        bool,
        typer.Option(
            "--reread", help="Also check that the source still has all that came after it."
        ),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Say whether a savepoint can be restored, and how. Exit code 5 if it cannot."""
    declared, layout = declaration.opened(pipeline, root)
    savepoint = find_savepoint(layout, id_)
    gone = print_passed_over(declared, layout, savepoint)
    found = verify.verify_savepoint(layout, declared.name, savepoint, read=read, passing=gone)
    problems = [f"{problem.table} {problem.what}".strip() for problem in found]
    if reread:
        problems += _source_problems(layout, declared, savepoint)
    today = list(damaged_today(layout, declared.name))
    apart = bool(_reread_only(declared, layout, savepoint))
    if json:
        print_json(
            {
                "savepoint": savepoint.id,
                "restorable": not (problems or today),
                "problems": problems,
                "reread_only": apart,
                "today": today,
                "passed_over": list(gone),
            }
        )
    elif problems:
        _print_problems(f"savepoint {savepoint.id} cannot be restored:", problems)
        print(command("savepoint list"), file=sys.stderr)
    elif today:
        _print_problems(f"savepoint {savepoint.id} is whole, but today's tables are not:", today)
        print(command("repair"), file=sys.stderr)
        print("or keep them and restore into a copy:", file=sys.stderr)
        copied = command("savepoint restore", savepoint.id, "--to", NEW_ROOT)
        print(copied, file=sys.stderr)
    else:
        every = "every page of every file" if read else "every file of every table"
        how = f"can be restored, {REREAD_ONLY}" if apart else "can be restored"
        print(f"savepoint {savepoint.id} {how}: {every} is there")
    if problems or today:
        raise typer.Exit(exit_codes.LOG_GAP)


def _print_problems(what: str, problems: list[str]) -> None:
    print(what, *(f"  {problem}" for problem in problems), sep="\n", file=sys.stderr)


@app.command("restore")
def restore_savepoint(
    pipeline: PipelineName,
    id_: Id,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="ROOT", help="Into this folder; the original stays as it is."),
    ] = None,
    reread: Reread = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Go back to a savepoint: in place, or as a copy under another root.

    In place bronze stays, and everything built from it catches up at the next run.
    """
    target = None if to is None else checked_root(to)
    declared, layout = declaration.opened(pipeline, root)
    savepoint = find_savepoint(layout, id_)
    gone = print_passed_over(declared, layout, savepoint)
    if target is None:
        intent = restore_in_place(declared, layout, savepoint, reread=reread)
        done: dict[str, Any] = {"generation": intent.generation, "tables": sorted(intent.tables)}
        message = f"restored {savepoint.id}: generation {intent.generation}"
    else:
        if reread:
            raise typer.BadParameter(
                "a copy continues from its own bronze; leave the option out", param_hint="--reread"
            )
        clone_savepoint(layout, savepoint, Layout.of(target, declared.name), passing=gone)
        done, message = {"root": target}, f"copied {savepoint.id} to {target}"
    done |= {"pipeline": declared.name, "savepoint": savepoint.id, "passed_over": list(gone)}
    under = ["--root", target] if target else []
    following = [command("run", *under)]
    if savepoint.definition != declared.digest:
        other = f"its tables were made from another declaration than {declared.file} is now:"
        following = [other, command("plan", *under), command("upgrade", *under)]
    respond(json, done, message, *following)


@app.command("delete")
def delete_savepoint(
    pipeline: PipelineName,
    id_: Id,
    force: Annotated[
        bool, typer.Option("--force", help="Even the last one that can be restored.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Delete a savepoint; the next vacuum deletes files that only it needed."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = find_any_savepoint(layout, id_)
    if not force and is_last_restorable(layout, declared, found):
        raise HeadgateError(
            f"{found.id} is the last savepoint that can be restored",
            remedy=f"take another one first: {command('savepoint create')}\n"
            f"or delete it all the same: {command('savepoint delete', found.id, '--force')}",
        )
    store.delete_savepoint(layout, found)
    document = {"pipeline": declared.name, "deleted": found.id}
    respond(json, document, f"deleted savepoint {found.id}")


def _reread_only(declared: Pipeline, layout: Layout, *taken: Savepoint) -> frozenset[str]:
    try:
        return reread_only(declared, layout, taken)
    except HeadgateError:
        return frozenset()  # `verify` and `repair` report a damaged log


def _source_problems(layout: Layout, declared: Pipeline, savepoint: Savepoint) -> list[str]:
    try:
        require_source_for(declared, layout, savepoint)
    except SavepointError as error:
        return [error.message]
    return []


REREAD_ONLY = "with --reread only"
"""Shown for a savepoint that is later than the batch to which bronze was reset."""


def show_list(
    declared: Pipeline,
    found: Sequence[Savepoint | UnreadableSavepoint],
    reread_only: Collection[str],
) -> None:
    """``reread_only`` are the ids of the savepoints that can be restored only with ``--reread``."""
    table = grid("", "id", "taken", "batch:", "rows:", "size:", "declaration", "note")
    for each in found:
        if isinstance(each, Savepoint):
            same = "this one" if each.definition == declared.digest else "another"
            note = "; ".join(
                [REREAD_ONLY] * (each.id in reread_only) + [each.note] * bool(each.note)
            )
            numbers = (_batches(each), each.rows, size_text(each.bytes))
            table.add_row(*cells(each.id, each.created, *numbers, same, note))
        else:
            table.add_row(*cells(each.id, "damaged", "", "", "", "", each.why))
    console().print(table)


def show_one(savepoint: Savepoint, *, reread_only: bool) -> None:
    out = console()
    out.print(f"savepoint {savepoint.id}", style="bold", markup=False)
    for name, value in (
        ("taken", f"{savepoint.created:%F %T}Z"),
        ("note", savepoint.note or "-"),
        ("batch", _batches(savepoint)),
        ("generation", str(savepoint.generation)),
        ("declaration", savepoint.definition[:16]),
        *_of_sources(savepoint),
        ("engine", savepoint.engine),
        *([("restore", REREAD_ONLY)] if reread_only else ()),
    ):
        out.print(f"  {name:<12} {value}", markup=False, soft_wrap=True)
    table = grid("", "table", "version:", "batch:", "generation:", "rows:", "size:")
    for path, saved in savepoint.tables.items():
        numbers = (saved.version, saved.n, saved.generation, saved.rows, size_text(saved.bytes))
        table.add_row(*cells(path, *numbers))
    out.print(table)


def described(
    each: Savepoint | UnreadableSavepoint, *, reread_only: bool = False
) -> dict[str, Any]:
    if not isinstance(each, Savepoint):
        return {"id": each.id, "damaged": each.why}
    return {
        "id": each.id,
        "pipeline": each.pipeline,
        "created": each.created.isoformat(),
        "note": each.note,
        "generation": each.generation,
        "definition": each.definition,
        "sources": {name: _described(of) for name, of in each.sources.items()},
        "rows": each.rows,
        "bytes": each.bytes,
        "reread_only": reread_only,
    }


def _described(source: SavedSource) -> dict[str, Any]:
    watermark = None if source.watermark is None else time_of(source.watermark).isoformat()
    return {"n": source.n, "offsets": dict(source.offsets), "watermark": watermark}


def _batches(savepoint: Savepoint) -> str:
    """The batch id, with several sources that of each."""
    found = savepoint.sources.items()
    if len(found) == 1:
        return "".join(f"{source.n:,}" for _, source in found)
    return ", ".join(f"{source.n:,} of {name}" for name, source in found)


def _of_sources(savepoint: Savepoint) -> Iterator[tuple[str, str]]:
    """What a savepoint records of each source, as names and texts."""
    for name, source in savepoint.sources.items():
        of = f" of {name}" if len(savepoint.sources) > 1 else ""
        yield f"source{of}", _offsets(source)
        yield f"watermark{of}", _clock(source)


def _offsets(source: SavedSource) -> str:
    if (sequence := source.offsets.get("sequence")) is not None:
        return f"files up to {sequence:,}"
    return ", ".join(f"{p}: {o:,}" for p, o in source.offsets.items()) or "nothing yet"


def _clock(source: SavedSource) -> str:
    return "-" if source.watermark is None else f"{time_of(source.watermark):%F %T}Z"
