"""``headgate start | stop | restart``: a pipeline that runs without a terminal."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli import declaration
from headgate.cli.life.folders import look_at_landing, make_root
from headgate.cli.life.pausing import look_at_pause
from headgate.cli.life.screen import Say, waiting
from headgate.cli.options import (
    DEFAULT_ROOT,
    AcceptGap,
    FromSavepoint,
    Json,
    PipelineName,
    Root,
    command,
)
from headgate.cli.output import print_json
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.spec.model import Pipeline
    from headgate.supervision.job_state import JobState

STOPPING = "stopping after the current batch"

Now = Annotated[bool, typer.Option("--now", help="Kill it instead of waiting; nothing is lost.")]
TakeOver = Annotated[bool, typer.Option("--take-over", help="Take it from whoever runs it.")]


def start(
    pipeline: PipelineName,
    take_over: TakeOver = False,
    accept_gap: AcceptGap = False,
    from_savepoint: FromSavepoint = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Start a pipeline in the background. Returns when its tables are open."""
    with waiting("checking the declaration") as say:
        declared = declaration.load(pipeline)
        if from_savepoint is not None:
            from headgate.cli.life.run import go_back

            say(f"restoring savepoint {from_savepoint}")
            go_back(declared, Layout.of(root, declared.name), from_savepoint)
        pid = _start(declared, root, say, take_over=take_over, accept_gap=accept_gap)
    _started(declared, root, pid, json)


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
    declared = declaration.load(pipeline)
    layout = Layout.of(root, declared.name)
    with waiting(STOPPING) as say:
        ended = _stop(layout, now)
        if savepoint:
            say("taking a savepoint")
        taken = _savepoint(declared, layout) if savepoint else None
    if json:
        pids = [job.owner.pid for job in ended]
        print_json({"pipeline": declared.name, "stopped": pids, "savepoint": taken})
        return
    for job in ended:
        print(f"{declared.name}: {job.job} job {'killed' if now else 'stopped'}")
    if not ended:
        print(f"{declared.name}: not running")
    if taken is not None:
        print(f"{declared.name}: savepoint {taken}")


def _savepoint(declared: Pipeline, layout: Layout) -> str:
    from headgate.savepoints.store import create

    return create(layout, declared, datetime.now(UTC), "at stop").id


def restart(
    pipeline: PipelineName,
    now: Now = False,
    accept_gap: AcceptGap = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Stop a pipeline and start it again."""
    declared = declaration.load(pipeline)
    with waiting(STOPPING) as say:
        _stop(Layout.of(root, declared.name), now)
        pid = _start(declared, root, say, accept_gap=accept_gap)
    _started(declared, root, pid, json)


def _start(
    declared: Pipeline, root: str, say: Say, *, take_over: bool = False, accept_gap: bool = False
) -> int:
    from headgate.cli.life.driving import require_machine
    from headgate.cli.life.run import look_at_gap
    from headgate.supervision.local import launch

    require_machine(declared)
    look_at_gap(declared, accept_gap)
    layout = Layout.of(root, declared.name)
    make_root(layout)
    look_at_pause(declared, layout, root)
    if remark := look_at_landing(declared):
        print(remark, file=sys.stderr)
    options = ["--take-over"] * take_over + ["--accept-gap"] * accept_gap
    say("starting a process")
    return launch(layout, declared.file, root, options, say)


def _stop(layout: Layout, now: bool) -> tuple[JobState, ...]:
    from headgate.supervision import local

    return local.kill(layout) if now else local.stop(layout)


def _started(declared: Pipeline, root: str, pid: int, json: bool) -> None:
    if json:
        print_json({"pipeline": declared.name, "pid": pid})
        return
    print(f"{declared.name}: running as process {pid}")
    file = str(declared.file)
    print(command("status", file, root))
    print(command("logs", file, root, "-f"))
    print(command("stop", file, root))
