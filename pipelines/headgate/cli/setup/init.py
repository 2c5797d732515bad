"""``headgate init``: a new project that runs as it is."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from headgate.cli.options import Json
from headgate.cli.output import respond
from headgate.commands import Place, program, rendered, shell_command
from headgate.setup.scaffold import create_project


def init(
    folder: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="The project's folder; made if it is missing."),
    ],
    json: Json = False,
) -> None:
    """Create a project: declarations, sample data, tests."""
    if not folder:
        raise typer.BadParameter(
            "it is empty; . is the folder that you are in", param_hint="FOLDER"
        )
    files = create_project(Path(folder))
    again = shell_command("run", "pipelines/shop.yml", "--once", "--drain")
    respond(
        json,
        {"folder": str(Path(folder).absolute()), "files": [str(f) for f in files]},
        *(f"  {file}" for file in files),
        f"\ncd {quote(folder)}\n{rendered(again, Place(program(anywhere=True)))}",
    )
