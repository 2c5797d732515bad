"""Finds the streams of a folder of declarations, for DAG files.

Airflow runs this every few seconds, and before every task. So it imports no Spark, checks no
declaration and reads no table.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import yaml  # type: ignore[import-untyped]

from headgate.declaration.errors import Invalid
from headgate.declaration.files import declarations_in, project_above
from headgate.declaration.keys.settings import EVERY, MODES, POLICIES
from headgate.declaration.model import BackfillSchedule
from headgate.declaration.names import NAME_PATTERN
from headgate.declaration.quantities import parse_duration
from headgate.lake.storage.places import at_home, is_uri
from headgate.supervision.launcher import Stream


@dataclass(frozen=True)
class Declared:
    """The stream of a declaration, the names of its gold tables, and its ``airflow.backfill``.
    ``folds`` are the gold tables that a backfill can compute: those that read silver and fold it. A
    backfill of these corrects the tables that read them."""

    stream: Stream
    gold: tuple[str, ...]
    backfill: BackfillSchedule | None = None
    folds: tuple[str, ...] = ()


def declared_in(folder: Path, root: str | Path | None) -> tuple[Declared, ...]:
    """Every declaration of a folder that names its pipeline; the rest of it is not checked. Tables
    are under ``root``, else ``$HEADGATE_ROOT``, else ``lake``. A relative path starts in the folder
    that has ``pipelines``, as for all paths of a declaration, or else beside this folder.

    Of several files that name the same pipeline, the one called NAME.yml counts. If there is none,
    nothing says which of them is a draft, and the pipeline is left out. A file that names none,
    such as one with a mistake in its YAML, counts for the pipeline NAME if that has tables: its
    stream may run, and is still supervised."""
    tables = _root(folder, root)
    found = []
    for name, files in _by_pipeline(folder).items():
        file = _used(name, files)
        if file is not None and (_names(files[file]) or _has_run(tables, name)):
            gold = files[file].get("gold")
            names = tuple(filter(_is_name, gold)) if isinstance(gold, dict) else ()
            folds = tuple(each for each in names if gold and _is_backfilled(gold, each))
            stream, schedule = Stream(file, name, tables), _backfill(files[file])
            found.append(Declared(stream, names, schedule, folds))
    return tuple(found)


def _is_backfilled(gold: Mapping[str, Any], name: str) -> bool:
    """Whether a table is neither a rollup nor one of an append operator, which has no measures: to
    ask the operators would import the parsers of declarations for every file."""
    section = gold[name]
    if not isinstance(section, Mapping):
        return True
    return section.get("from") not in gold and "measures" in section


def _root(folder: Path, root: str | Path | None) -> str:
    """The root as an absolute path or a URI: the processes of Airflow have different working
    folders."""
    given = str(root or os.environ.get("HEADGATE_ROOT") or "lake")
    beside = project_above(folder) or folder.parent
    return given if is_uri(given) else str(beside / at_home(given))


def _has_run(root: str, name: str) -> bool:
    try:
        return Path(root, name).is_dir()
    except OSError:
        return False


def declared_twice(folder: Path) -> Iterator[str]:
    """What is wrong with each pipeline that several files of a folder declare."""
    for name, files in _by_pipeline(folder).items():
        if len(files) > 1:
            used = _used(name, files)
            so = f"its DAGs use {used.name}" if used else f"it has no DAGs: none is {name}.yml"
            yield (
                f"{', '.join(map(str, files))}: all declare the pipeline {name}, and {so}. "
                "Keep one; a draft beside it needs another suffix, such as .txt"
            )


def _by_pipeline(folder: Path) -> dict[str, dict[Path, dict[Any, Any]]]:
    """The files that declare each pipeline, with their contents. A file that names none, for
    example while it is edited, counts for the pipeline of its file name, so that a draft beside it
    does not replace it."""
    found: dict[str, dict[Path, dict[Any, Any]]] = {}
    for file in declarations_in(folder):
        content = _read(file)
        if _is_name(name := content["pipeline"] if _names(content) else file.stem):
            found.setdefault(name, {})[file] = content
    return found


def _names(content: Mapping[Any, Any]) -> bool:
    """Whether a declaration names its pipeline."""
    return _is_name(content.get("pipeline"))


def _used(name: str, files: Iterable[Path]) -> Path | None:
    """The file that counts among all that declare a pipeline; None if that is unknown."""
    first, *others = files
    return first if not others else next((f for f in (first, *others) if f.stem == name), None)


def _backfill(content: Mapping[Any, Any]) -> BackfillSchedule | None:
    """The section ``airflow.backfill``; None if it is missing or wrong. ``require_declarations``
    reports the mistakes."""
    airflow = content.get("airflow")
    section = airflow.get("backfill") if isinstance(airflow, dict) else None
    if not isinstance(section, dict):
        return None
    mode = section.get("mode", BackfillSchedule.mode)
    publish = section.get("publish", BackfillSchedule.publish)
    if mode not in MODES or publish not in POLICIES:
        return None
    try:
        every = parse_duration(str(section.get("every")))
    except Invalid:
        return None
    shortest, longest = EVERY
    return BackfillSchedule(every, mode, publish) if shortest <= every <= longest else None


def _read(file: Path) -> dict[Any, Any]:
    """The content of a declaration, with all values as text; empty if it cannot be read as a YAML
    mapping."""
    try:
        content = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_name(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and re.fullmatch(NAME_PATTERN, text) is not None


def place(folder: str | Path) -> Path:
    """Resolve a folder relative to the DAG file, which is the caller of this function's caller. A
    relative ``folder`` is searched beside that file, then above it, because Airflow's working
    folder is arbitrary."""
    path = at_home(str(folder))
    if path.is_absolute():
        return path
    caller = Path(sys._getframe(2).f_globals.get("__file__", Path.cwd() / "x")).resolve()
    for base in caller.parents:
        if (base / path).is_dir():
            return base / path
    return Path.cwd() / path
