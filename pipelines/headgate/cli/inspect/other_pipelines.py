"""Pipelines under another root, or run from another declaration of the same name, in `status` and
`list`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli.options import DEFAULT_ROOT, command_at
from headgate.cli.output import console
from headgate.lake.storage.places import is_uri

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.supervision.discovery import Sighting


def find_sightings(files: Iterable[Path], root: str) -> tuple[Sighting, ...]:
    """Pipelines of this machine: those that this user runs, and those under the likely roots
    (``root``, that of the environment, and `lake` in the current folder and in each declaration's
    project)."""
    from headgate.declaration.files import project_folder
    from headgate.supervision.discovery import running_drivers, sightings

    folders = (Path(), *(project_folder(file) for file in files))
    roots = [root, os.environ.get("HEADGATE_ROOT", ""), *(str(f / DEFAULT_ROOT) for f in folders)]
    near = [Path(each) for each in roots if each and not is_uri(each)]
    return sightings(tuple(running_drivers()), near, datetime.now(UTC))


def others(
    seen: Iterable[Sighting], name: str, file: Path, root: str, *, has_run: bool
) -> Iterator[Sighting]:
    """Other pipelines with the name ``name``: those that run under ``root`` from another
    declaration than ``file``, and those under another root. A stopped pipeline under another root
    counts only if none has run under ``root``."""
    for each in seen:
        if each.pipeline != name:
            continue
        if each.root == Path(root).resolve():
            if each.is_alive and each.file is not None and each.file != file.resolve():
                yield each
        elif each.is_alive or not has_run:
            yield each


def as_dict(seen: Sighting) -> dict[str, Any]:
    file = str(seen.file) if seen.file else None
    return {"root": str(seen.root), "state": seen.state, "pid": seen.pid, "file": file}


def in_words(seen: Mapping[str, Any], root: str) -> str:
    """The result of :func:`as_dict` as text."""
    if seen["root"] == str(Path(root).resolve()):
        return f"process {seen['pid']} runs another declaration of this name"
    return f"{seen['state']} under {seen['root']}" + (
        f" (process {seen['pid']})" * bool(seen["pid"])
    )


def show(seen: Iterable[Mapping[str, Any]], declared: Pipeline, root: str) -> None:
    for each in seen:
        file = each["file"] or str(declared.file)
        heading = f"{declared.name}: {in_words(each, root)}, from {file}:"
        if each["file"] is None:
            heading = f"{declared.name}: {in_words(each, root)}:"
        for line in (heading, command_at("status", file, each["root"])):
            console().print(line, markup=False, soft_wrap=True)
