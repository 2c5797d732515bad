"""``headgate doctor``: what this machine lacks, and the command that fixes it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate import exit_codes
from headgate.cli.hidden import shown
from headgate.cli.ledger_screen import MARK
from headgate.cli.options import DEFAULT_ROOT, Json, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells
from headgate.cli.screen import waiting
from headgate.doctor import examine
from headgate.jars import LockSet, fetch
from headgate.jars.class_archive import record


def doctor(
    fetch_jars: Annotated[
        bool, typer.Option("--fetch-jars", help="First fetch the pinned jars that are missing.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Check this machine, and name a remedy for each problem."""
    if fetch_jars:
        with waiting("fetching the jars") as say:
            for lock in LockSet:
                fetch(lock)
            say("recording the classes that drivers load, once: about a minute")
            record()
    findings = [
        replace(f, found=shown(f.found), remedy=shown(f.remedy)) for f in examine(Path(root))
    ]
    good = all(f.ok for f in findings)
    table = grid("", "", "check", "found")
    for f in findings:
        table.add_row(MARK[f.ok], *cells(f.name, f.found))
        if not f.ok:
            advice = Text(f"needed: {f.needed}\n").append(f.remedy, style="bold")
            table.add_row("", "", advice)
    respond(json, {"ok": good, "findings": [asdict(f) for f in findings]}, table)
    if not good:
        raise typer.Exit(exit_codes.MACHINE)
