"""``headgate upgrade``: deploys a changed declaration, and rolls it back if it fails."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.hidden import shown
from headgate.cli.lifecycle.background import stopping_for_a_start
from headgate.cli.lifecycle.concluding import end_early
from headgate.cli.lifecycle.rolling_back import known, rolled_back
from headgate.cli.options import DEFAULT_ROOT, Json, LogFormatted, PipelineName, Root, command
from headgate.cli.output import respond
from headgate.cli.plan import MEANINGS, deployment_document, show_deployment
from headgate.cli.screen import Say, waiting
from headgate.cli.sources import SourceLabels
from headgate.cli.startable import check_startable, make_root
from headgate.cli.undone import (
    left_by_loads,
    rebuild_in_words,
    rebuild_progress,
    show_undone,
    stopped_loads,
    undone_loads,
    wait_for_loads,
)
from headgate.commands import pipeline_command
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline
from headgate.driver.refusing import require_unchanged
from headgate.errors import HeadgateError
from headgate.history.savepoints.deployment import Deployment, deployment_of
from headgate.history.savepoints.rebuilds import continued_rebuild
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint, settled_snapshot
from headgate.lake.control.driver_requests import stop_requested
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import snapshot
from headgate.supervision import local
from headgate.supervision.job_state import overall_state, probe
from headgate.supervision.logs import options_of

POLL_EVERY = 1.0  # seconds


class UpgradeError(HeadgateError, code=exit_codes.USAGE):
    """The new declaration cannot be deployed."""


def upgrade(
    pipeline: PipelineName,
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            metavar="SECONDS",
            min=0.0,
            help="Seconds to wait for progress, and for a rebuild to finish.",
        ),
    ] = 180.0,
    log_format: LogFormatted = "text",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Deploy a changed declaration, and roll back if it fails.

    Stops the pipeline, takes a savepoint, starts it again. Tables that must be rebuilt are built
    beside the current ones: readers see the old rows until the rebuild is done.

    If the new declaration makes no progress, the savepoint is restored and the old declaration is
    started. A pipeline that did not run before is stopped again afterwards, once its open loads of
    history are done: a bronze that was rebuilt reads them again.
    """
    with waiting("comparing the declaration with the tables"):
        declared, layout = declaration.opened(pipeline, root)
        found = deployment_of(layout, declared)
        _require_possible(found, declared)
        stopped = stopped_loads(layout, declared)
        _require_startable(declared, layout)
    if not json:
        show_deployment(found, root)
    logs = options_of(log_format, os.environ)
    with waiting("stopping after the current batch") as say:
        ended, last = _stop(layout, declared)
        say("taking a savepoint")
        savepoint = _saved(layout, declared, stopped=ended)
        had = {path: at.n for path, at in savepoint.tables.items()}
        try:
            local.launch(layout, declared.file, root, ["--apply", *logs], say)
            _await_progress(layout, declared, found, patience, say, had=had)
            if not ended:
                wait_for_loads(layout, declared, say)
        except KeyboardInterrupt:
            message = f"the new declaration keeps running; savepoint before it: {savepoint.id}"
            print(message, file=sys.stderr)
            raise
        except (HeadgateError, OSError) as failed:
            if _was_stopped(layout, last):
                raise _stopped_meanwhile(savepoint) from failed
            say(f"rolling back to savepoint {savepoint.id}")
            back = layout, declared, found, savepoint, root
            raise rolled_back(*back, failed, logs if ended else None) from failed
        if not ended:
            say("stopping again: it did not run before")
            local.stop(layout)
    left = None if ended else left_by_loads(layout, declared, stopped)
    _respond(layout, declared, found, savepoint, left, json=json, runs=ended)
    if left is not None:
        end_early(left)


def _require_startable(declared: Pipeline, layout: Layout) -> None:
    """Raises everything that would keep a driver from starting, before the stop."""
    check_startable(declared, layout)
    require_unchanged(declared, layout)
    make_root(layout)
    settled_snapshot(layout, declared)  # fails if no savepoint can be taken


def _stop(layout: Layout, declared: Pipeline) -> tuple[bool, int]:
    """Returns whether a driver ran, and the last epoch."""
    with stopping_for_a_start(declared):
        ran = any(job.operation is None for job in local.stop(layout))
    return ran, max((job.epoch for job in probe(layout, datetime.now(UTC))), default=0)


def _was_stopped(layout: Layout, last: int) -> bool:
    """Whether another process has asked a job of a later epoch than ``last`` to stop."""
    jobs = probe(layout, datetime.now(UTC))
    return any(job.epoch > last and stop_requested(layout, job.epoch) for job in jobs)


def _stopped_meanwhile(savepoint: Savepoint) -> UpgradeError:
    return UpgradeError(
        "another process has stopped the pipeline; nothing was rolled back",
        f"to continue: {pipeline_command('start')}; the savepoint before it: {savepoint.id}",
        exit_codes.NOT_ALIVE,
    )


def _saved(layout: Layout, declared: Pipeline, *, stopped: bool) -> Savepoint:
    try:
        return create_savepoint(layout, declared, datetime.now(UTC), "before an upgrade")
    except (HeadgateError, OSError) as failed:
        error = known(failed)
        note = "; the pipeline was stopped for the upgrade" if stopped else ""
        raise UpgradeError(f"{error.message}{note}", error.remedy) from failed


def _require_possible(found: Deployment, declared: Pipeline) -> None:
    if found.action == "new":
        raise UpgradeError(f"{declared.name} has no tables", command("run"))
    if found.action == "refuse":
        gone = next((f": {each.gone}" for each in found.loads if each.gone), "")
        raise UpgradeError(f"{MEANINGS['refuse']}{gone}", f"see why: {command('plan')}")
    if not found.declaration:
        print("the old declaration is not kept, so a rollback cannot start it", file=sys.stderr)


def _await_progress(
    layout: Layout,
    declared: Pipeline,
    found: Deployment,
    patience: float,
    say: Say,
    *,
    had: Mapping[str, int],
) -> None:
    """Wait until the rebuild is published, or until ``patience`` is over and it has processed at
    least one batch. ``had`` has the batch ids before the upgrade, by path. Raises UpgradeError,
    also if a job ended."""
    deadline = time.monotonic() + patience
    say(f"waiting for the first batch of {', '.join(found.to_rebuild()) or 'the new one'}")
    while True:
        state = overall_state(probe(layout, datetime.now(UTC)))
        if state in ("stopped", "dead"):
            raise UpgradeError(f"its job is {state}", pipeline_command("logs"))
        paused = state == "paused"
        behind = _behind(layout, declared, found, had={} if paused else had)
        # A stale job, as on a busy machine, may still report progress.
        if not behind and state != "stale":
            steps = rebuild_progress(layout, declared)
            if not steps or paused or time.monotonic() > deadline:
                return
            say(rebuild_in_words(steps[0]))
        elif time.monotonic() > deadline:
            if state == "stale":
                raise UpgradeError("its job is stale", pipeline_command("logs"))
            message = f"no progress in {patience:.0f} s: {', '.join(behind)}"
            raise UpgradeError(message, "give it more --patience")
        time.sleep(POLL_EVERY)


def _behind(
    layout: Layout, declared: Pipeline, found: Deployment, *, had: Mapping[str, int]
) -> list[str]:
    """The tables to rebuild that have processed no batch although bronze has one, and those whose
    rebuild has not begun."""
    at = snapshot(layout, declared)
    rebuild = continued_rebuild(at.decisions, declared)
    if rebuild is None:  # not begun, or published
        made_as = {path: at.tables[path].state.definition for path in found.to_change()}
        return [path for path, digest in made_as.items() if digest != declared.definitions[path]]
    reached = {step.table: step.n for step in rebuild.steps(layout, declared.name)}
    numbers = {path: position.n for path, position in at.tables.items()} | reached
    bronze = (node.path for node in at.graph.of(BRONZE))
    if begun := [path for path in bronze if reached.get(path) == 0 and had.get(path, 0) > 0]:
        return begun
    return [
        path
        for path in found.to_rebuild()
        if not reached.get(path) and numbers.get(at.graph.numbered_by(path).path, 0) > 0
    ]


def _respond(
    layout: Layout,
    declared: Pipeline,
    found: Deployment,
    savepoint: Savepoint,
    left: HeadgateError | None,
    *,
    json: bool,
    runs: bool,
) -> None:
    steps, loads = rebuild_progress(layout, declared), undone_loads(layout, declared)
    labels = SourceLabels(declared.sources)
    done: dict[str, Any] = {"pipeline": declared.name, "savepoint": savepoint.id}
    done |= {"running": runs, "rebuilding": steps, "deployed": deployment_document(found)}
    done |= {"open_loads": [labels.fields(each) for each in loads if each.state != "stopped"]}
    respond(
        json,
        done | {"left": left and shown(left.message)},
        f"{declared.name}: upgraded; the way back is savepoint {savepoint.id}",
        *map(rebuild_in_words, steps),
        *([] if left else [lambda: show_undone(loads)]),
        *([command("late list")] if any(plan.late_again for plan in found.tables) else []),
        command("status" if runs else "run"),
    )
