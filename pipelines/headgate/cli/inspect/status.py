"""``headgate status``: the state of a pipeline's jobs."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.inspect import other_pipelines
from headgate.cli.inspect.status_screen import (
    checkpoints_document,
    describe_freshness,
    partitions_table,
    show_checkpoints,
    trends_of,
    waiting,
    waiting_for,
)
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import console, grid, print_json
from headgate.cli.sources import SourceLabels
from headgate.cli.undone import rebuild_in_words, rebuild_progress
from headgate.lake.control.driver_reports import (
    Failure,
    SourceProgress,
    about_source,
    last_failure,
)
from headgate.lake.control.driver_requests import paused_since, stop_asked
from headgate.lake.storage.documents import encoded
from headgate.lake.storage.layout import Layout
from headgate.supervision.logs import run_log

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.lake.tables.decisions import Decision
    from headgate.supervision.job_state import Ended, JobState

COLOUR = {
    "running": "green",
    "paused": "yellow",
    "stopped": "dim",
    "stale": "yellow",
    "dead": "red",
}


def status(
    pipeline: PipelineName,
    checkpoint: Annotated[
        bool,
        typer.Option("--checkpoint", help="Also show the last checkpoints and the open windows."),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show the state of a pipeline's jobs.

    Exit code 7 if a job died or failed and nobody asked it to stop: start it again. Exit code 2, 3
    or 5 if a job failed with that code, which needs a person first. Exit code 3 also if a source
    waits for a person, while the job goes on with others.
    """
    from headgate.insight.status.checkpoints import checkpoints
    from headgate.supervision.job_state import overall_state, probe
    from headgate.supervision.supervisor import NEEDS_A_PERSON, stop_holds

    declared = declaration.load(pipeline, needs_secrets=False)
    now = datetime.now(UTC)
    layout = Layout.of(root, declared.name)
    jobs, paused = probe(layout, now), paused_since(layout)
    state, left = overall_state(jobs), waiting(layout, declared)
    restored = last_reset(layout, declared)
    words, fresh = describe_freshness(layout, declared, now)
    ended, failure = how_it_ended(layout, jobs)
    is_to_stop = stop_holds(jobs, stop_asked(layout))
    found = checkpoints(layout, declared) if checkpoint else None
    around = other_pipelines.find_sightings([declared.file], root)
    others = other_pipelines.others(around, declared.name, declared.file, root, has_run=bool(jobs))
    other_documents = [other_pipelines.as_dict(each) for each in others]
    if json:
        print_json(
            {
                "pipeline": declared.name,
                "state": state,
                "ended": ended,
                "failure": failure and encoded(failure),
                "paused": paused and paused.isoformat(),
                "jobs": [_as_dict(job, declared) for job in jobs],
                "elsewhere": other_documents,
                "freshness": fresh,
                "rebuilding": rebuild_progress(layout, declared),
                **left.document(),
                "reset": restored and {**restored.document, "at": restored.at.isoformat()},
                **({"checkpoint": checkpoints_document(found)} if found else {}),
            }
        )
    else:
        if jobs:
            _show(declared.name, jobs, now, ended)
            console().print(words, markup=False, soft_wrap=True)
            _remark(jobs, paused, is_to_stop=is_to_stop, has_log=run_log(layout).exists())
            for step in rebuild_progress(layout, declared):
                console().print(rebuild_in_words(step), markup=False, soft_wrap=True)
            left.show()
            _show_reset(restored)
            if found is not None:
                show_checkpoints(found)
        elif failure is None:
            typer.echo(f"it has never run under {root}: {command('run', '--once')}")
        if failure is not None:
            _show_failure(failure)
        other_pipelines.show(other_documents, declared, root)
    if failure is not None and failure.code in NEEDS_A_PERSON:
        raise typer.Exit(failure.code)
    if (state in ("dead", "stale") and not is_to_stop) or failure is not None:
        raise typer.Exit(exit_codes.NOT_ALIVE)
    if any(source.failure for job in jobs if job.is_alive for source in job.sources.values()):
        raise typer.Exit(exit_codes.SOURCE)


def _show_rejected(jobs: tuple[JobState, ...]) -> None:
    from headgate.supervision.progress_text import rejected_rows

    found: dict[str, int] = {}
    for job in jobs:  # several jobs may count a table: the largest count is the newest
        found |= {n: max(rows, found.get(n, 0)) for n, rows in rejected_rows(job).items()}
    if found:
        said = ", ".join(f"{name} {rows:,}" for name, rows in found.items())
        console().print(f"rows that rules rejected: {said}", markup=False, soft_wrap=True)


def _show_reset(restored: Decision | None) -> None:
    if restored is not None:
        since = f"generation {restored.document['generation']} since {restored.at:%F %T}Z"
        console().print(f"{since}: {restored.document['why']}", markup=False, soft_wrap=True)


def last_reset(layout: Layout, declared: Pipeline) -> Decision | None:
    """The last reset of the tables; None if there was none."""
    from headgate.lake.tables.decisions import ControlTable

    return ControlTable.of(layout.storage, declared.name).refresh().reset


def how_it_ended(layout: Layout, jobs: tuple[JobState, ...]) -> tuple[Ended | None, Failure | None]:
    """How the last run ended, and why it failed if it did."""
    from headgate.supervision.job_state import how_ended

    failure = last_failure(layout)
    ended = how_ended(jobs, stop_asked(layout), failure)
    return ended, failure if ended == "failed" else None


def _show_failure(failure: Failure) -> None:
    message = f"it failed at {failure.at:%F %T}Z, exit code {failure.code}: {failure.reason}"
    console().print(message, style="red", markup=False, soft_wrap=True)
    from headgate.supervision.supervisor import NEEDS_A_PERSON

    # The remedy comes before `start`, because a restart may fail for the same reason. It certainly
    # fails if a person is needed: then `start` is not shown.
    again = "" if failure.code in NEEDS_A_PERSON else f"\n{command('start')}"
    typer.echo(f"{failure.remedy}{again}")


def _show(name: str, jobs: tuple[JobState, ...], now: datetime, ended: Ended | None) -> None:
    from headgate.declaration.quantities import span

    table = grid("", name, "state", "process", "batch:", "backlog:", "watermark", "for:", "seen:")
    for job in jobs:
        process = f"{job.owner.pid} on {job.owner.host}"
        is_one = len(job.sources) == 1
        reached = ("-", "-", "-") if not job.sources else ("", "", "")
        if is_one:
            reached = _reached(*job.sources.values())
        age = span(now - job.since) if job.is_alive else "-"
        seen = f"{span(now - job.renewed)} ago"
        table.add_row(job.job, _state(job, ended), process, *reached, age, seen)
        for source, each in job.sources.items() if not is_one else ():
            failed = ended == "failed" and each.failure is not None
            state = _state_of_source(each) if job.is_alive or failed else ""
            table.add_row(f"  {source}", state, "", *_reached(each))
    console().print(table)


def _reached(source: SourceProgress) -> tuple[str, str, str]:
    """Batch, backlog and watermark."""
    backlog = "-" if source.backlog is None else str(source.backlog)
    clock = f"{source.watermark:%F %T}Z" if source.watermark else "-"
    return f"{source.n:,}", backlog, clock


def _state_of_source(source: SourceProgress) -> str:
    if source.failure is not None:
        return "[red]failed[/]"
    return "" if source.outage is None else "[red]waiting[/]"


def _state(job: JobState, ended: Ended | None) -> str:
    if job.state == "stopped" and ended == "failed":
        return "[red]failed[/]"
    if job.state == "running" and job.is_waiting:
        return "[red]waiting[/]"
    shown = "finished" if job.state == "stopped" and job.finished else job.state
    return f"[{COLOUR[job.state]}]{shown}[/]"


def _as_dict(job: JobState, declared: Pipeline) -> dict[str, object]:
    """What belongs to one of several sources is in ``sources``. Before the job has opened its
    tables, it knows nothing of them."""
    content, trends = encoded(job), trends_of(job)
    of_sources: dict[str, dict[str, object]] = {}
    for name in declared.sources:
        known = content["sources"].get(name) or dict.fromkeys(_OF_SOURCE)
        trend = trends.get(name)
        of_sources[name] = {**known, "trend": trend and trend.as_dict()}
    del content["sources"]
    return content | SourceLabels(declared.sources).facts(of_sources)


_OF_SOURCE = tuple(field.name for field in fields(SourceProgress))


def _show_partitions(job: JobState) -> None:
    for name, source in job.sources.items():
        if source.backlog is not None and source.backlog.partitions:
            title = "" if len(job.sources) == 1 else f"source {name}"
            console().print(partitions_table(source.backlog.partitions, title))
            if (waiting := waiting_for(source.backlog)) is not None:
                console().print(about_source(name, waiting, job.sources), markup=False)


def _show_trouble(job: JobState) -> None:
    if job.trouble and job.is_alive:
        console().print(f"{job.job}: {job.trouble}", style="red", markup=False)
    for source in job.sources.values():
        if source.failure is not None and job.is_alive:
            typer.echo(source.failure.remedy)
    for name, trend in trends_of(job).items():
        said = about_source(name, str(trend), job.sources)
        console().print(said, markup=False, soft_wrap=True)


def _remark(
    jobs: tuple[JobState, ...],
    paused: datetime | None,
    *,
    is_to_stop: bool,
    has_log: bool,
) -> None:
    """Print what has no column in the table of jobs. ``has_log``: a driver was started in the
    background; one in a terminal has only Spark's log."""
    for job in jobs:
        _show_partitions(job)
    for job in jobs:
        _show_trouble(job)
    if is_to_stop and any(job.state == "stale" for job in jobs):
        typer.echo(f"it is asked to stop, and does not respond:\n{command('stop', '--now')}")
    elif any(job.state in ("dead", "stale") for job in jobs):
        # The log comes before `start`: a restart may fail for the same reason.
        logs = command("logs") if has_log else command("logs", "--spark")
        typer.echo(f"{logs}\n{command('start')}")
    if paused is not None:
        ending = any(job.state == "running" and "bronze" in job.layers for job in jobs)
        effect = "reads no new data after its current batch" if ending else "reads no new data"
        resume = command("resume")
        typer.echo(f"paused since {paused:%F %T}Z: it {effect}, until:\n{resume}")
    _show_rejected(jobs)
