"""``headgate quality report``: one HTML page about the rules of a pipeline."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import respond

app = typer.Typer(help="What rules have decided.", no_args_is_help=True, callback=lambda: None)


@app.command("report")
def report(
    pipeline: PipelineName,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Default: PIPELINE_quality.html."),
    ] = None,
    show_values: Annotated[
        bool,
        typer.Option("--show-values", help="Show ids and values of rejected rows, unmasked."),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Write a page with the rules, how often they were met, rejected rows, and held versions.

    It is one file, which opens without a network. A file of its name is replaced.
    """
    from headgate.quality.findings import findings
    from headgate.quality.page import page

    declared, layout = declaration.opened(pipeline, root)
    file = output or Path(f"{declared.name}_quality.html")
    found = findings(layout, declared, datetime.now(UTC))
    file.write_text(page(found, show_values=show_values), encoding="utf-8")
    respond(json, {"pipeline": declared.name, "file": str(file)}, str(file))
