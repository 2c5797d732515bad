"""``headgate doctor``: what this machine lacks, and the command that fixes it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli.hidden import shown
from headgate.cli.options import DEFAULT_ROOT, Json, Root
from headgate.cli.output import MARK, grid, respond
from headgate.cli.rows import cells
from headgate.cli.screen import waiting
from headgate.cli.startable import examined
from headgate.commands import commands_in
from headgate.machine.jars import LockSet, fetch
from headgate.machine.jars.class_archive import record
from headgate.setup.doctor import examine

_PIPELINE = "Also check whether this pipeline can be started here."


def doctor(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help=_PIPELINE, show_default=False)
    ] = None,
    fetch_jars: Annotated[
        bool, typer.Option("--fetch-jars", help="First fetch the pinned jars that are missing.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Check this machine, and name a remedy for each problem.

    With PIPELINE, also check whether it could be started here: its declaration, its secrets, its
    sources and its tables.
    """
    if fetch_jars:
        with waiting("fetching the jars") as say:
            for lock in LockSet:
                fetch(lock)
            say("recording the classes that drivers load, once: about a minute")
            record()
    made = [*examine(Path(root)), *(examined(pipeline, root) if pipeline else ())]
    findings = [replace(f, found=shown(f.found), remedy=shown(f.remedy)) for f in made]
    good = all(f.ok for f in findings)
    table = grid("", "", "check", "found")
    for f in findings:
        table.add_row(MARK[f.ok], *cells(f.name, f.found))
        if not f.ok:
            advice = Text(f"needed: {f.needed}\n").append(f.remedy, style="bold")
            table.add_row("", "", advice)
    listed = [
        asdict(f) | {"commands": commands_in(m.remedy)} for f, m in zip(findings, made, strict=True)
    ]
    respond(json, {"ok": good, "findings": listed}, table)
    if not good:
        raise typer.Exit(next(f.code for f in findings if not f.ok))
