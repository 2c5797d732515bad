"""The arguments and options that verbs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_ROOT = "lake"


def absolute_root(root: str) -> str:
    """A folder as an absolute path; an address of an object store as it is."""
    return root.rstrip("/") if "://" in root else str(Path(root).expanduser().absolute())


PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="A declaration's path, or its name.", show_default=False
    ),
]
Root = Annotated[
    str,
    typer.Option(
        "--root",
        envvar="HEADGATE_ROOT",
        help="The folder that holds the tables.",
        callback=absolute_root,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object as the last line of stdout.")
]


def command(verb: str, pipeline: str, root: str, *rest: str) -> str:
    """A command line that a person can paste, with ``--root`` where it matters."""
    words = ["headgate", verb, pipeline, *rest]
    if root != absolute_root(os.environ.get("HEADGATE_ROOT", DEFAULT_ROOT)):
        words += ["--root", root]
    return " ".join(words)
