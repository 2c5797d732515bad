"""``headgate run``: a pipeline in the foreground."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli import declaration, json_log
from headgate.cli.declaration import named
from headgate.cli.driving import jars_for
from headgate.cli.lifecycle.concluding import conclude, end_early, failure_recorded
from headgate.cli.lifecycle.pausing import check_pause
from headgate.cli.options import (
    DEFAULT_ROOT,
    AcceptGap,
    FromSavepoint,
    Json,
    LogFormatted,
    PipelineName,
    Root,
    TakeOver,
)
from headgate.cli.output import console
from headgate.cli.screen import screen, waiting
from headgate.cli.startable import check_startable, make_root
from headgate.cli.undone import (
    LeftError,
    has_open_load,
    left_by_loads,
    rebuild_progress,
    stopped_loads,
)
from headgate.commands import rendered
from headgate.declaration.graph import Layer
from headgate.declaration.kinds import BRONZE, GOLD, SILVER
from headgate.driver.refusing import require_unchanged
from headgate.driver.task import NO_REBUILD, RebuildRequest, Task
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.supervision.logs import options_of

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.driver.driver import Driver
    from headgate.driver.progress import JobProgress
    from headgate.errors import HeadgateError


_STOPPED = "a job was stopped before its end"
_FULL_REFRESH = "Rebuild this table: silver.NAME or gold.NAME."


def run(
    pipeline: PipelineName,
    once: Annotated[
        bool, typer.Option("--once", help="End when everything there is has been processed.")
    ] = False,
    drain: Annotated[
        bool, typer.Option("--drain", help="At the end, make the open windows final.")
    ] = False,
    take_over: TakeOver = False,
    accept_gap: AcceptGap = False,
    from_savepoint: FromSavepoint = None,
    full_refresh: Annotated[
        list[str] | None,
        typer.Option("--full-refresh", metavar="TABLE", help=_FULL_REFRESH),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", hidden=True)] = False,
    declared_as: Annotated[str | None, typer.Option("--declared-as", hidden=True)] = None,
    layer: Annotated[Layer | None, typer.Option("--layer", hidden=True)] = None,
    log_format: LogFormatted = "text",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Run a pipeline here. Ctrl-C ends it after the current batch, a second one at once."""
    json_log.begin(log_format, pipeline, answers=json)
    with waiting("checking the declaration"):
        declared = declaration.load(pipeline, kept=(root, declared_as) if declared_as else None)
        if log := json_log.active():
            log.pipeline = declared.name
        layout = Layout.of(root, declared.name)
        rebuild = RebuildRequest(refreshed(declared, full_refresh or ()), apply)
        if layer is None:
            check_gap(declared, accept_gap)
            make_root(layout)
    with failure_recorded(declared, root, forgets=layer is None):
        if layer is None:
            _prepare(declared, layout, once, from_savepoint)
        began, before = time.monotonic(), batches_of(layout, declared)
        stopped = stopped_loads(layout, declared)
        layers = (layer,) if layer else LAYERS
        task = Task(
            declared,
            root,
            layers=layers,
            cores=os.cpu_count() or 2,
            jars=jars_for(declared),
            rebuild=rebuild,
            once=once,
            drain=drain and "bronze" in layers,
            take_over=take_over,
            accept_gap=accept_gap,
        )
        if declared.jobs == "per_layer" and layer is None:
            options = ["--declared-as", declared_as] if declared_as else []
            options += options_of(log_format, os.environ)
            said = _drive_layers(task, layout, options)
        else:
            said = _drive(task, layout).left
    left: HeadgateError | None = LeftError(said) if said else None
    if layer is None:
        if once and left is None:
            left = left_by_loads(layout, declared, stopped)
        conclude(declared, layout, json, began, before, left)
    elif left is not None:
        end_early(left)


def _prepare(declared: Pipeline, layout: Layout, once: bool, from_savepoint: str | None) -> None:
    """Before the first driver starts, check machine, pause and sources, and restore
    ``from_savepoint`` if it is given. Raises HeadgateError if no driver may start."""
    with waiting("checking machine and source") as say:
        check_pause(declared, layout, once=once)
        check_startable(declared, layout, once=once)
        if from_savepoint is not None:
            say(f"restoring savepoint {from_savepoint}")
            go_back(declared, layout, from_savepoint)
        require_unchanged(declared, layout, once=once)


def refreshed(declared: Pipeline, names: Sequence[str]) -> tuple[str, ...]:
    """The paths of tables named as ``gold.NAME`` or ``silver.NAME``. Raises UsageError."""
    valid = {f"silver.{name}": SILVER.path(name) for name in declared.silver}
    valid |= {f"gold.{name}": GOLD.path(name) for name in declared.gold}
    what = f"--full-refresh: {declared.name} has no table"
    return tuple(named(valid, name, what) for name in names)


def go_back(declared: Pipeline, layout: Layout, wanted: str) -> None:
    """Restore a savepoint before anything starts. Raises SavepointError, LeaseHeldError."""
    from headgate.cli.restoring import print_passed_over, restore_in_place
    from headgate.history.savepoints.store import find_savepoint

    savepoint = find_savepoint(layout, wanted)
    print_passed_over(declared, layout, savepoint)
    intent = restore_in_place(declared, layout, savepoint, starts=True)
    print(f"restored {savepoint.id}: generation {intent.generation}", file=sys.stderr)


def check_gap(declared: Pipeline, accept_gap: bool) -> None:
    """Raises BadParameter for a source that cannot have a gap."""
    if not accept_gap:
        return
    from headgate.declaration.contracts.source import connector_of

    why = [connector_of(source).why_no_gap for source in declared.sources.values()]
    if None not in why:
        said = rendered(f"{declared.name} {why[0]}")
        raise typer.BadParameter(said, param_hint="--accept-gap")


def _drive_layers(task: Task, layout: Layout, options: Sequence[str]) -> str | None:
    """Run a task as one process per layer, each with further ``options``. Returns what a run with
    ``once`` has not done, as ``_drive`` does."""
    from headgate.cli.lifecycle.per_layer import run_layers

    declared = task.pipeline
    opening = replace(task, only_open=True, drain=False, accept_gap=False)
    if task.rebuild != NO_REBUILD or rebuild_progress(layout, declared):
        opened = _drive(replace(opening, once=False), layout)
        if opened.was_asked_to_stop:
            return _STOPPED if task.once else None
    if not run_layers(task, options):
        return _STOPPED if task.once else None
    if task.once and (rebuild_progress(layout, declared) or has_open_load(layout, declared)):
        # Bronze's job, which publishes a rebuild and ends loads, has ended before gold's.
        return _drive(
            replace(opening, rebuild=NO_REBUILD, take_over=False, loads=True), layout
        ).left
    return None


def _drive(task: Task, layout: Layout) -> Driver:
    """Run a driver to its end."""
    from headgate.cli.driving import drive
    from headgate.cli.log_file import divert_to
    from headgate.machine.process_tree.rotation import keep_bounded
    from headgate.supervision.logs import run_log

    declared, layers = task.pipeline, task.layers
    log = divert_to(layout, "fused" if layers == LAYERS else layers[0])
    # Jobs per layer share the run log: the job of bronze rotates it.
    keep_bounded((log, run_log(layout)) if "bronze" in layers else (log,))
    one = layers == LAYERS
    with screen(console(stderr=True), live=one, name="" if one else layers[0]) as shown:
        shown.say("starting Spark")
        from headgate.driver.driver import Driver
        from headgate.machine.jars.class_archive import record_in_background

        def report(progress: JobProgress) -> None:
            shown.take(progress)
            if progress.batches == 1:
                record_in_background()

        with _metrics(declared, layout, layers), _lineage(declared, layout, layers):
            driver = Driver(task, report, shown.say, tell=shown.tell)
            drive(driver)
    return driver


def _metrics(
    declared: Pipeline, layout: Layout, layers: Sequence[str]
) -> AbstractContextManager[None]:
    """The metrics of the pipeline, which the job of bronze serves if the declaration says so."""
    if declared.metrics is None or "bronze" not in layers:
        return nullcontext()
    from headgate.cli.hidden import shown
    from headgate.insight.metrics.serving import metrics_served

    return metrics_served(declared, layout, lambda text: print(shown(text), file=sys.stderr))


def _lineage(
    declared: Pipeline, layout: Layout, layers: Sequence[str]
) -> AbstractContextManager[None]:
    """Lineage of the pipeline, which the job of gold sends if a receiver is configured."""
    if "gold" not in layers:
        return nullcontext()
    from headgate.insight.lineage.emitting import lineage_sent

    return lineage_sent(declared, layout, lambda text: print(text, file=sys.stderr))


def batches_of(layout: Layout, declared: Pipeline) -> int:
    """The batches of all sources now, but for damaged tables, which the driver names."""
    from headgate.lake.tables.errors import LogGapError
    from headgate.lake.tables.table import Table

    found = 0
    for name in declared.sources:
        table = Table(layout.storage, BRONZE.path(name), pipeline=declared.name)
        with suppress(LogGapError):
            found += table.refresh().n if table.exists else 0
    return found
