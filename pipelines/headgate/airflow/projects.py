"""Which streams a folder of declarations gives, for the files of a DAGs folder.

Read every few seconds by Airflow, so nothing here imports Spark, looks at tables, or asks anybody
anything.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.spec.errors import DeclarationError
from headgate.spec.files import declarations_in
from headgate.spec.load import load
from headgate.spec.model import Pipeline
from headgate.supervision.launcher import Stream


@dataclass(frozen=True)
class Declared:
    """A declaration that has no mistakes, and where its tables are."""

    pipeline: Pipeline
    stream: Stream


def declared_in(folder: Path, root: str | Path | None) -> tuple[Declared, ...]:
    """Every declaration of a folder but those with mistakes. Tables are under ``root``: where
    ``$HEADGATE_ROOT`` says, else in ``lake`` beside the folder."""
    tables = str(root or os.environ.get("HEADGATE_ROOT") or folder.parent / "lake")
    found = []
    for file in declarations_in(folder):
        with suppress(DeclarationError):
            pipeline = load(file)
            found.append(Declared(pipeline, Stream(file, pipeline.name, tables)))
    return tuple(found)


def place(folder: str | Path) -> Path:
    """What the DAG file means that called the caller of this: Airflow's working folder says
    nothing. A relative ``folder`` is looked for beside that file, then above it."""
    path = Path(folder).expanduser()
    if path.is_absolute():
        return path
    caller = Path(sys._getframe(2).f_globals.get("__file__", Path.cwd() / "x")).resolve()
    for base in caller.parents:
        if (base / path).is_dir():
            return base / path
    return Path.cwd() / path
