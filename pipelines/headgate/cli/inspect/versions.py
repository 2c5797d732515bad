"""``headgate versions``: which versions of the tables belong together, for other readers."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond
from headgate.querying.versions import versions_at


def versions(
    pipeline: PipelineName,
    n: Annotated[
        int | None,
        typer.Option("--at", metavar="N", min=0, help="The batch; the last one if left out."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show which versions of the tables belong together.

    They have all of the same batches, so a reader that opens them sees one state of the pipeline.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = versions_at(layout, declared, n)
    tables = {
        path: {"version": version, "uri": layout.storage.uri(path)}
        for path, version in found.versions.items()
    }
    rows = ((path, str(each["version"]), each["uri"]) for path, each in tables.items())
    shown = grid(f"batch {found.n}", "table", "version:", "folder", rows=rows)
    respond(json, {"pipeline": declared.name, "n": found.n, "tables": tables}, shown)
