"""Whether a declaration can compute the rows of a table that was made from another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headgate.commands import pipeline_command, shell_command
from headgate.declaration.contracts.operator import bounds_of, columns_of
from headgate.declaration.digest import Meaning, meaning_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.names import Columns
from headgate.declaration.types import differences
from headgate.history.backfill.errors import OtherDeclarationError


def require_compatible(deployed: Pipeline, given: Pipeline, name: str) -> None:
    """Raises OtherDeclarationError if the gold table ``name`` of ``given`` reads another bronze
    table than that of ``deployed``, or has other windows, keys or columns. Formulas, conditions,
    silver's columns and rules may differ."""
    found = list(_differences(deployed, given, name))
    if found:
        # Without a folder, it would be read as the name of a pipeline.
        file = str(given.file) if given.file.parent != Path() else f"./{given.file}"
        raise OtherDeclarationError(
            f"{given.file}: gold.{name} would not have the same rows to compare: {found[0]}",
            remedy="deploy it, which rebuilds the tables: " + shell_command("upgrade", file),
        )


def _differences(deployed: Pipeline, given: Pipeline, name: str) -> Iterator[str]:
    if given.name != deployed.name:
        yield f"the file declares the pipeline {given.name}"
        return
    before, after = deployed.gold[name], given.gold.get(name)
    if after is None:
        yield "the table is not declared"
        return
    bronze = [BRONZE.path(p.silver[p.gold[name].silver].source) for p in (deployed, given)]
    if bronze[0] != bronze[1] or _of(deployed, bronze[0]) != _of(given, bronze[1]):
        yield "it reads another source, or its records in another way"
    was, now = (_gold(meaning_of(p), name) for p in (deployed, given))
    for key in was.keys() | now.keys():
        if key not in ("silver", "where", "measures", "columns") and was.get(key) != now.get(key):
            yield f"{key} changes"
    if said := ", ".join(_of_columns(_columns(before), _columns(after))):
        yield said


def _of(pipeline: Pipeline, path: str) -> str | None:
    return pipeline.definitions.get(path)


def _gold(meant: Meaning, name: str) -> Meaning:
    found: Meaning = meant["gold"][name]
    return found


def _columns(table: GoldTable) -> Columns:
    return {**columns_of(table), **table.types}


def _of_columns(before: Columns, after: Columns) -> Iterator[str]:
    """How columns and their types change."""
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield f"{name} removed"
        elif name not in before:
            yield f"{name} added"
        elif str(before[name]) != str(after[name]):
            yield from differences(before[name], after[name], name)
    if before.keys() == after.keys() and [*before] != [*after]:
        yield "its columns are in another order"


def require_windows(table: GoldTable) -> None:
    """Raises OtherDeclarationError if the results of a table are no ranges of time."""
    if not bounds_of(table):
        raise OtherDeclarationError(
            f"gold.{table.name} has no windows of time, so no range of time has rows of its own",
            remedy="rebuild the table: "
            + pipeline_command("run", "--full-refresh", f"gold.{table.name}"),
        )
