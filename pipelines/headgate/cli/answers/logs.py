"""``headgate logs``: what a pipeline in the background says."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, ClassVar

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import print_json
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout


class NoLogError(HeadgateError):
    exit_code: ClassVar[int] = 1


def logs(
    pipeline: PipelineName,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as it grows.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", help="How many of the last lines.")] = 40,
    spark: Annotated[bool, typer.Option("--spark", help="Spark's own log instead.")] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show the log of a pipeline that `headgate start` has started."""
    from headgate.supervision import logs as files

    declared = declaration.load(pipeline)
    layout = Layout.of(root, declared.name)
    path = files.newest_spark_log(layout) if spark else files.run_log(layout)
    if path is None or (not path.exists() and not follow):
        raise NoLogError(
            f"{declared.name} has no log under {files.log_folder(layout)}",
            remedy=command("start", str(declared.file), root),
        )
    last = files.tail(path, lines)
    if json:
        print_json({"log": str(path), "lines": last})
        return
    for line in last:
        print(line)
    if follow:
        with suppress(KeyboardInterrupt):
            for line in files.follow(path):
                print(line, flush=True)
