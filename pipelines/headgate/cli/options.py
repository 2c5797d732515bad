"""The arguments and options that verbs share."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
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
AcceptGap = Annotated[
    bool,
    typer.Option(
        "--accept-gap",
        help="Pass over records that the topic has lost unread; the ledger then shows which.",
    ),
]
FromSavepoint = Annotated[
    str | None,
    typer.Option(
        "--from-savepoint",
        metavar="ID",
        help="Go back to this savepoint first: its id, its beginning, or latest.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object as the last line of stdout.")
]


def command(verb: str, pipeline: str, root: str, *rest: str) -> str:
    """A command line that a person can paste, with ``--root`` where it matters."""
    words = [*verb.split(), pipeline, *rest]
    if root != absolute_root(os.environ.get("HEADGATE_ROOT", DEFAULT_ROOT)):
        words += ["--root", root]
    return f"{program()} {shlex.join(words)}"


def program() -> str:
    """How a person calls this program again: by its name, or by its path where no PATH leads to
    it, as after `make demo` in a fresh clone."""
    called = Path(sys.argv[0])
    if shutil.which("headgate") or called.name != "headgate" or not called.is_file():
        return "headgate"
    called, here = called.absolute(), Path.cwd()
    return shlex.quote(str(called.relative_to(here) if called.is_relative_to(here) else called))
