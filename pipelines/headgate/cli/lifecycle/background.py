"""``headgate start | stop | restart``: a pipeline in the background."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.lifecycle.pausing import check_pause
from headgate.cli.lifecycle.run import check_gap, go_back
from headgate.cli.options import (
    DEFAULT_ROOT,
    AcceptGap,
    FromSavepoint,
    Json,
    LogFormatted,
    PipelineName,
    Root,
    TakeOver,
    command,
)
from headgate.cli.output import respond
from headgate.cli.screen import Say, waiting
from headgate.cli.startable import check_startable, check_tables, make_root
from headgate.commands import pipeline_command, rendered
from headgate.declaration.model import Pipeline
from headgate.driver.refusing import require_free
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.logs import options_of

Now = Annotated[bool, typer.Option("--now", help="Kill it instead of waiting; nothing is lost.")]


def start(
    pipeline: PipelineName,
    take_over: TakeOver = False,
    accept_gap: AcceptGap = False,
    from_savepoint: FromSavepoint = None,
    log_format: LogFormatted = "text",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Start a pipeline in the background. Returns when it has reached its source."""
    with waiting("checking the declaration") as say:
        declared, layout = declaration.opened(pipeline, root)
        _require_startable(declared, layout, accept_gap)
        if not take_over:
            require_free(declared, layout)
        if from_savepoint is not None:
            say(f"restoring savepoint {from_savepoint}")
            go_back(declared, layout, from_savepoint)
        check_tables(declared, layout)  # what a restore resets is not checked
        options = ["--take-over"] * take_over + ["--accept-gap"] * accept_gap
        pid = _start(declared, layout, root, say, [*options, *options_of(log_format, os.environ)])
    _started(declared, pid, json)


def stop(
    pipeline: PipelineName,
    now: Now = False,
    savepoint: Annotated[
        bool, typer.Option("--savepoint", help="Take a savepoint once it has ended.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Stop a pipeline after its current batch. Waits until it has ended."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    with waiting(_stopping(now)) as say:
        ended = _stop(layout, now)
        taken = None
        if savepoint:
            say("taking a savepoint")
            taken = create_savepoint(layout, declared, datetime.now(UTC), "at stop").id
    how = "killed" if now else "stopped"
    silent = [job.owner for job in probe(layout, datetime.now(UTC)) if job.is_alive]
    done = [f"{job.job} job {how}" for job in ended if job.owner not in silent]
    done += [f"{owner} is silent; it ends if it still exists" for owner in silent]
    done = done or ["not running"]
    if taken is not None:
        done.append(f"savepoint {taken}")
    pids = [job.owner.pid for job in ended]
    document = {"pipeline": declared.name, "stopped": pids, "savepoint": taken}
    respond(json, document, *(f"{declared.name}: {each}" for each in done))


def restart(
    pipeline: PipelineName,
    now: Now = False,
    accept_gap: AcceptGap = False,
    log_format: LogFormatted = "text",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Stop a pipeline and start it again."""
    declared, layout = declaration.opened(pipeline, root)
    # Everything that would keep the pipeline from starting is checked before it is stopped.
    _require_startable(declared, layout, accept_gap)
    check_tables(declared, layout)
    with waiting(_stopping(now)) as say:
        with stopping_for_a_start(declared):
            _stop(layout, now)
        options = ["--accept-gap"] * accept_gap
        pid = _start(declared, layout, root, say, [*options, *options_of(log_format, os.environ)])
    _started(declared, pid, json)


@contextmanager
def stopping_for_a_start(declared: Pipeline) -> Iterator[None]:
    """Say that the pipeline stays stopped, if the wait for its end fails or is interrupted."""
    try:
        yield
    except (local.NotAliveError, KeyboardInterrupt):
        said = f"{declared.name} stays stopped once it has ended; then: {pipeline_command('start')}"
        print(rendered(said), file=sys.stderr)
        raise


def _require_startable(declared: Pipeline, layout: Layout, accept_gap: bool) -> None:
    """Raises what a driver would raise about the request, the machine and the sources, as far as
    this can be checked without a JVM. Changes no table."""
    check_gap(declared, accept_gap)
    make_root(layout)
    check_startable(declared, layout)


def _start(declared: Pipeline, layout: Layout, root: str, say: Say, options: Sequence[str]) -> int:
    """Start a driver and return its pid when it has reached its source, or keeps trying to. Raises
    HeadgateError."""
    check_pause(declared, layout)
    say("starting a process")
    started = local.launch(layout, declared.file, root, options, say)
    if started.waits_for is not None:
        print(f"{declared.name} runs, and does not read yet: {started.waits_for}", file=sys.stderr)
    if started.is_outage:
        print(
            "it begins to read as soon as there is an answer; if the declaration is wrong, correct "
            f"it, then: {command('restart')}",
            file=sys.stderr,
        )
    return started.pid


def _stopping(now: bool) -> str:
    return "ending it at once" if now else "stopping after the current batch"


def _stop(layout: Layout, now: bool) -> tuple[JobState, ...]:
    return local.stop_now(layout) if now else local.stop(layout)


def _started(declared: Pipeline, pid: int, json: bool) -> None:
    respond(
        json,
        {"pipeline": declared.name, "pid": pid},
        f"{declared.name}: running as process {pid}",
        command("status"),
        command("logs", "-f"),
        command("stop"),
    )
