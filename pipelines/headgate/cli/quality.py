"""``headgate quality report``: one HTML page about the rules of a pipeline."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import respond
from headgate.declaration.expectations.data_docs import build
from headgate.errors import UsageError
from headgate.insight.quality.data_docs import runs
from headgate.insight.quality.findings import findings
from headgate.insight.quality.page import page
from headgate.lake.storage.layout import CONTROL

app = typer.Typer(help="What rules have decided.", no_args_is_help=True, callback=lambda: None)


@app.command("report")
def report(
    pipeline: PipelineName,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Default: a file beside the tables."),
    ] = None,
    data_docs: Annotated[
        Path | None,
        typer.Option(
            "--data-docs",
            metavar="FOLDER",
            help="Build a site of Great Expectations' Data Docs instead.",
        ),
    ] = None,
    show_values: Annotated[
        bool,
        typer.Option("--show-values", help="Show ids and values of rejected rows, unmasked."),
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Write a page with the rules, how often they were met, rejected rows, and held versions.

    It is one file, which opens without a network. A file of its name is replaced. Data Docs have a
    page for each of the newest batches and versions.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = findings(layout, declared, datetime.now(UTC))
    file = output or Path(layout.storage.uri(f"{CONTROL}/quality.html"))
    if data_docs is not None:
        named = [*(t.suite for t in found.silver), *(t.suite for t in found.gold)]
        suites = {suite.name: suite for suite in named}
        shown = tuple(runs(found, show_values=show_values))
        try:
            data_docs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{data_docs} cannot be made: {error.strerror}",
                remedy="name a folder that you can write to: "
                + command("quality report", "--data-docs", f"{declared.name}_data_docs"),
            ) from error
        file = build(data_docs, shown, tuple(suites.values()))
        respond(json, {"pipeline": declared.name, "file": str(file)}, str(file))
        return
    try:
        file.write_text(page(found, show_values=show_values), encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}",
            remedy="name a file in a folder that is there: "
            + command("quality report", "--output", f"{declared.name}_quality.html"),
        ) from error
    respond(json, {"pipeline": declared.name, "file": str(file)}, str(file))
