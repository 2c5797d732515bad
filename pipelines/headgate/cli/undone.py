"""What a pipeline has not done yet: rebuilds of tables, and loads of history, of which gold lacks
some rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from headgate import exit_codes
from headgate.cli.load_following import NobodyLoadsError, follow, hindrance, require_done
from headgate.cli.options import command
from headgate.cli.output import console
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.history.loads.requests import LoadState


def rebuild_progress(layout: Layout, declared: Pipeline) -> list[dict[str, Any]]:
    """For each silver and gold table that is being rebuilt: ``table``, the last batch ``n`` that
    the rebuild has processed, and the last batch ``upto`` of bronze."""
    from headgate.declaration.graph import graph_of
    from headgate.declaration.kinds import BRONZE, kind_of
    from headgate.history.savepoints.rebuilds import continued_rebuild
    from headgate.lake.tables.decisions import ControlTable
    from headgate.lake.tables.table import Table

    graph, found = graph_of(declared), list[dict[str, Any]]()
    try:
        decisions = ControlTable.of(layout.storage, declared.name).refresh()
        rebuild = continued_rebuild(decisions, declared)
        steps = list(rebuild.steps(layout, declared.name)) if rebuild else []
        # If bronze itself is rebuilt, its batch ids begin again.
        reread = {step.table: step.n for step in steps if kind_of(step.table) == BRONZE}
        for step in steps:
            if step.table not in reread:
                bronze = graph.numbered_by(step.table).path
                upto = reread.get(bronze)
                if upto is None:
                    upto = Table(layout.storage, bronze, pipeline=declared.name).refresh().n
                found.append({"table": step.table, "n": step.n, "upto": upto})
    except (HeadgateError, FileNotFoundError):
        return []  # damaged, or the rebuild is just ending: the next start reports damage
    return found


def rebuild_in_words(step: dict[str, Any]) -> str:
    return (
        f"{step['table']} is being rebuilt: batch {step['n']:,} of {step['upto']:,}; readers see "
        "the old rows until it is done"
    )


class LeftError(HeadgateError, code=exit_codes.INTERRUPTED):
    """Some work is not done yet; the next run of the pipeline does it. ``next_command`` goes on
    with it."""

    def __init__(self, what: str, next_command: str | None = None) -> None:
        super().__init__(what, remedy=f"go on: {next_command or command('run', '--once')}")


def load_states(layout: Layout, declared: Pipeline) -> list[LoadState]:
    """All loads, the oldest first. While the bronze of its source is rebuilt, an open load is
    ``waiting``: it is read after the rebuild, and readers see the old bronze until then."""
    from headgate.history.loads.requests import all_loads, load_state

    found = [
        load_state(layout, declared.name, request) for request in all_loads(layout, declared.name)
    ]
    if not any(each.is_open for each in found):
        return found
    reread = _reread(layout, declared)
    return [
        replace(each, state="waiting", read=0, rows=0)
        if each.is_open and each.source in reread
        else each
        for each in found
    ]


def _reread(layout: Layout, declared: Pipeline) -> frozenset[str]:
    """The sources whose bronze is rebuilt. No load of them is read before all of the rebuild is
    published."""
    from headgate.declaration.kinds import BRONZE, kind_of, name_of
    from headgate.history.savepoints.rebuilds import continued_rebuild
    from headgate.lake.tables.decisions import ControlTable

    decisions = ControlTable.of(layout.storage, declared.name).refresh()
    rebuild = continued_rebuild(decisions, declared)
    tables = rebuild.tables if rebuild is not None else ()
    return frozenset(name_of(path) for path in tables if kind_of(path) == BRONZE)


def undone_loads(layout: Layout, declared: Pipeline) -> list[LoadState]:
    try:
        return [each for each in load_states(layout, declared) if each.is_undone]
    except (HeadgateError, FileNotFoundError):
        return []  # damaged, or a rebuild is ending right now: the driver reports it


def show_undone(loads: Sequence[LoadState]) -> None:
    for each in loads:
        style = "red" if each.state == "stopped" else "yellow"
        console().print(load_in_words(each), style=style, markup=False, soft_wrap=True)
    held = {"paused", "stopped"}
    if any(each.state not in held for each in loads):
        typer.echo(command("load"))
    if any(each.state in held for each in loads):
        typer.echo(command("load", "--resume"))


def load_in_words(load: LoadState) -> str:
    name = f"load {load.id}, {load.what}"
    if load.state == "stopped":
        return f"{name}, is stopped: {load.why}"
    if load.state == "waiting":
        return f"{name}, is read once bronze is rebuilt; until then readers see the old rows"
    if load.state == "folding":
        return f"{name}, is read; gold may lack its late rows, which are folded next"
    paused = ", is paused" if load.state == "paused" else ""
    read = f"{load.read:,} of {load.total:,} {load.unit} are read"
    return f"{name}{paused}: {read}; gold lacks the rest"


def has_open_load(layout: Layout, declared: Pipeline) -> bool:
    from headgate.history.loads.requests import all_loads, next_open_load

    return next_open_load(all_loads(layout, declared.name)) is not None


def stopped_loads(layout: Layout, declared: Pipeline) -> frozenset[str]:
    """The ids of loads that an error has stopped. Such a load counts also while bronze reads again
    what it had of the load."""
    from headgate.history.loads.requests import all_loads

    return frozenset(
        each.id
        for each in all_loads(layout, declared.name)
        if "stopped" in (each.wish, each.then if each.until else "")
    )


def wait_for_loads(layout: Layout, declared: Pipeline, say: Callable[[str], None]) -> None:
    """Wait until the open loads are done, or cannot go on, or no driver is left."""

    def is_hindered() -> bool:
        return hindrance(layout, declared, state.id) is not None

    def tell(words: str) -> None:
        say(f"load {state.id}: {words}")

    with suppress(NobodyLoadsError):  # `left_by_loads` reports it later
        for state in load_states(layout, declared):
            if state.is_open:
                follow(layout, declared, state.id, tell, is_over=is_hindered)


def left_by_loads(
    layout: Layout, declared: Pipeline, stopped_before: Collection[str]
) -> HeadgateError | None:
    """Why a load is not done, now that no driver runs any more: it waits for a person, an error has
    stopped it (not if it was ``stopped_before``), or the driver was stopped."""
    for state in load_states(layout, declared):
        if state.is_open:
            return hindrance(layout, declared, state.id) or LeftError(load_in_words(state))
        if state.id not in stopped_before:
            try:
                require_done(state)
            except HeadgateError as error:
                return error
    return None
