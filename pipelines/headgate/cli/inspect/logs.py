"""``headgate logs``: the log of a pipeline in the background."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, MOST_SHOWN, Follow, Json, PipelineName, Root, command
from headgate.cli.output import respond
from headgate.errors import HeadgateError
from headgate.supervision import logs as files


def logs(
    pipeline: PipelineName,
    follow: Follow = False,
    lines: Annotated[
        int,
        typer.Option("-n", "--lines", min=0, max=MOST_SHOWN, help="How many of the last lines."),
    ] = 40,
    spark: Annotated[bool, typer.Option("--spark", help="Spark's own log instead.")] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show the log of a pipeline that `start` has started."""
    if follow and json:
        raise typer.BadParameter("cannot be combined with --follow", param_hint="--json")

    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    path = files.newest_spark_log(layout) if spark else files.run_log(layout)
    if path is None or (not path.exists() and not follow):
        raise HeadgateError(
            f"{declared.name} has no log under {files.logs_folder(layout)}",
            remedy=command("start"),
        )
    last = files.tail_log(path, lines)
    respond(json, {"log": str(path), "lines": last}, *last)
    if follow:
        with suppress(KeyboardInterrupt):
            for line in files.follow_log(path):
                print(line, flush=True)
