"""``headgate run``: a pipeline in the foreground."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli import declaration, exit_codes
from headgate.cli.folders import look_at_landing, make_root
from headgate.cli.ledger import show_ledger
from headgate.cli.options import DEFAULT_ROOT, AcceptGap, Json, PipelineName, Root, command
from headgate.cli.output import console, print_json
from headgate.cli.pausing import look_at_pause
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS

if TYPE_CHECKING:
    from headgate.ledger.account import Ledger
    from headgate.spec.model import Pipeline


def run(
    pipeline: PipelineName,
    once: Annotated[
        bool, typer.Option("--once", help="End when everything there is has been absorbed.")
    ] = False,
    close_windows: Annotated[
        bool, typer.Option("--close-windows", help="At the end, make the open windows final.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the pipeline from whoever runs it.")
    ] = False,
    accept_gap: AcceptGap = False,
    layer: Annotated[str | None, typer.Option("--layer", hidden=True)] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Run a pipeline here. Ctrl-C ends it after the current batch, a second one at once."""
    if layer not in (None, *LAYERS):
        raise typer.BadParameter(f"{layer}: one of {', '.join(LAYERS)}", param_hint="--layer")
    declared = declaration.load(pipeline)
    layout = Layout.of(root, declared.name)
    if layer is None:
        look_at_gap(declared, accept_gap)
        make_root(layout)
        look_at_pause(declared, layout, root, once=once)
        if remark := look_at_landing(declared):
            print(remark, file=sys.stderr)
    began, before = time.monotonic(), _batches(layout, declared)
    if declared.jobs == "per_layer" and layer is None:
        from headgate.cli.per_layer import run_layers

        run_layers(
            declared,
            layout,
            root,
            once=once,
            close_windows=close_windows,
            take_over=take_over,
            accept_gap=accept_gap,
        )
    else:
        layers = (layer,) if layer else LAYERS
        options = {"once": once, "take_over": take_over, "accept_gap": accept_gap}
        options["close_windows"] = close_windows and "bronze" in layers
        _drive(declared, layout, root, layers, options)
    if layer is None:
        _conclude(declared, layout, root, json, began, before)


def look_at_gap(declared: Pipeline, accept_gap: bool) -> None:
    """Raises BadParameter where there can be no gap to accept."""
    if accept_gap and declared.source.kafka is None:
        said = f"{declared.name} reads files; one that is gone is passed over with: files skip"
        raise typer.BadParameter(said, param_hint="--accept-gap")


def _drive(
    declared: Pipeline,
    layout: Layout,
    root: str,
    layers: tuple[str, ...],
    options: Mapping[str, bool],
) -> None:
    from headgate.cli.driving import drive, jars_for, require_java
    from headgate.cli.log_file import divert, hide
    from headgate.cli.screen import screen
    from headgate.spec.secrets import secrets_of
    from headgate.supervision.logs import rotate, spark_log

    require_java()
    jars = jars_for(declared)
    hide(secrets_of(declared))
    log = spark_log(layout, "fused" if layers == LAYERS else layers[0])
    rotate(log)
    divert(log)
    from headgate.jobs.driver import Driver, Task

    cores = os.cpu_count() or 2
    task = Task(declared, root, layers=layers, cores=cores, jars=jars, **options)
    with screen(console(stderr=True), live=layers == LAYERS) as report:
        drive(Driver(task, report))


def _batches(layout: Layout, declared: Pipeline) -> int:
    """Bronze's n now; 0 where there is no table yet."""
    from headgate.tables.table import Table

    path = Layout.bronze(declared.source.name)
    if not layout.storage.exists(f"{path}/_delta_log"):
        return 0
    return Table(layout.storage, path, pipeline=declared.name).refresh().n


def _conclude(
    declared: Pipeline, layout: Layout, root: str, json: bool, began: float, before: int
) -> None:
    from headgate.ledger import balance

    account = balance(layout, declared)
    if json:
        print_json(summary(account, account.n - before, time.monotonic() - began))
    else:
        out = console()
        show_ledger(account, out)
        file, gold = str(declared.file), next(iter(declared.gold))
        for said in (
            command("ledger", file, root, "--by-id"),
            command("query", file, root, f"SELECT * FROM {gold} LIMIT 10"),
        ):
            out.print(said, style="dim", markup=False, soft_wrap=True)
    if not account.balanced:
        raise typer.Exit(exit_codes.DOES_NOT_BALANCE)


def summary(account: Ledger, batches: int, seconds: float) -> dict[str, Any]:
    """How ``run --json`` and ``demo --json`` end. Counts are those of the tables since their
    beginning; ``batches`` and ``seconds`` are those of this run."""
    return {
        "pipeline": account.pipeline,
        "read": account.read,
        "duplicate": account.duplicate,
        "quarantined": account.quarantined,
        "silver": {s.table: s.silver for s in account.silver},
        "filtered": account.filtered,
        "gold": {
            g.table: {"rows": g.rows, "folded": g.folded, "late": g.late} for g in account.gold
        },
        "balanced": account.balanced,
        "batches": batches,
        "seconds": round(seconds, 3),
    }
