"""``headgate status`` and ``headgate list``: how jobs are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from headgate.cli import declaration, exit_codes
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import console, grid, print_json
from headgate.cli.rows import cells
from headgate.spec.errors import DeclarationError
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.supervision.job_state import JobState

COLOUR = {"running": "green", "stopped": "dim", "stale": "yellow", "dead": "red"}


def status(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Say how a pipeline's jobs are. Exit code 7 when one died or went silent."""
    from headgate.supervision.job_state import overall, probe

    declared = declaration.load(pipeline)
    now = datetime.now(UTC)
    jobs = probe(Layout.of(root, declared.name), now)
    state = overall(jobs)
    if json:
        print_json(
            {"pipeline": declared.name, "state": state, "jobs": [job.as_dict() for job in jobs]}
        )
    else:
        if jobs:
            _show(declared.name, jobs, now)
        else:
            typer.echo(
                f"it has never run under {root}: "
                f"{command('run', str(declared.file), root, '--once')}"
            )
    if state in ("dead", "stale"):
        raise typer.Exit(exit_codes.NOT_ALIVE)


def _show(name: str, jobs: tuple[JobState, ...], now: datetime) -> None:
    table = grid("", name, "state", "process", "batch:", "backlog:", "event clock", "for:", "seen:")
    for job in jobs:
        process = f"{job.owner.pid} on {job.owner.host}"
        backlog = "-" if job.backlog is None else str(job.backlog)
        clock = f"{job.closing:%F %T}Z" if job.closing else "-"
        table.add_row(
            job.job,
            f"[{COLOUR[job.state]}]{job.state}[/]",
            process,
            "-" if job.n is None else f"{job.n:,}",
            backlog,
            clock,
            _span(now - job.since) if job.is_alive else "-",
            f"{_span(now - job.renewed)} ago",
        )
    console().print(table)


def _span(span: timedelta) -> str:
    """Roughly how long, in one unit."""
    seconds = max(0.0, span.total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def list_pipelines(root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """List the pipelines that a name can find here, and how they are."""
    from headgate.spec.load import load
    from headgate.supervision.job_state import overall, probe

    found: dict[str, dict[str, object]] = {}
    for file in declaration.declarations():
        if file.stem in found:
            continue
        try:
            declared = load(file)
        except DeclarationError as error:
            entry = {"state": "invalid", "problem": str(error.problems[0])}
        else:
            state = overall(probe(Layout.of(root, declared.name), datetime.now(UTC)))
            entry = {"pipeline": declared.name, "state": state}
        found[file.stem] = {"name": file.stem, "file": str(file), **entry}
    if json:
        print_json({"pipelines": list(found.values())})
        return
    table = grid("", "name", "state", "file")
    for shown in found.values():
        table.add_row(*cells(shown["name"], shown["state"], shown["file"]))
        if "problem" in shown:
            table.add_row(*cells("", "", shown["problem"]))
    console().print(table)
