"""Checks whether a savepoint can be restored: every file of every version exists and is intact."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.resets import is_built
from headgate.history.savepoints.savepoint import SavedTable, Savepoint, operation_files
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.damage import damage_of
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class SavepointProblem:
    """The reason why a table cannot be restored."""

    table: str
    what: str


def verify_savepoint(
    layout: Layout,
    pipeline: str,
    savepoint: Savepoint,
    *,
    read: bool = False,
    passing: Collection[str] = (),
) -> tuple[SavepointProblem, ...]:
    """The problems of a savepoint; empty if it can be restored.

    Logs are compared with the savepoint's digests, files by existence and size. With ``read``, the
    checksum of every page of every file is checked too. The tables ``passing`` are skipped.
    """
    if savepoint.pipeline != pipeline:
        return (SavepointProblem("", f"it is a savepoint of {savepoint.pipeline}"),)
    found = [
        SavepointProblem(path, what)
        for path, saved in savepoint.tables.items()
        if path not in passing
        for what in _problems(Table(layout.storage, path, pipeline=pipeline), saved, read)
    ]
    return tuple(found or _missing_beside(layout, savepoint))


def _missing_beside(layout: Layout, savepoint: Savepoint) -> Iterator[SavepointProblem]:
    decisions = ControlTable.of(layout.storage, savepoint.pipeline).refresh()
    for path in operation_files(decisions, savepoint):
        if not layout.storage.exists(path):
            yield SavepointProblem("", f"{path}, which a published backfill needs, is missing")


def damaged_today(layout: Layout, pipeline: str) -> tuple[str, ...]:
    """Messages about damage of the tables' current logs. Damaged logs prevent a restore in place,
    but not a copy of an intact savepoint."""
    return tuple(
        what for table in tables_of(layout, pipeline) if (what := _damage_of_log(table)) is not None
    )


def _damage_of_log(table: Table) -> str | None:
    try:
        table.refresh()
        table.require_intact()
    except LogGapError as error:
        return error.message
    return None


def passed_over(layout: Layout, pipeline: Pipeline, savepoint: Savepoint) -> tuple[str, ...]:
    """The tables of a savepoint that are neither declared nor present. The other tables can be
    restored without them."""
    declared = {*pipeline.definitions, *map(PUBLICATION.path, pipeline.publish)}
    unasked = (path for path in savepoint.tables if path not in declared and _is_output(path))
    tables = (Table(layout.storage, path, pipeline=pipeline.name) for path in unasked)
    return tuple(table.name for table in tables if not table.exists)


def _is_output(path: str) -> bool:
    return is_built(path) or path.startswith(PUBLICATION.path(""))


def _problems(table: Table, saved: SavedTable, read: bool) -> Iterator[str]:
    storage = table.storage
    if not table.exists:
        yield "is missing"
        return
    try:
        files = live_files(DeltaTable(storage.uri(), version=saved.version))
        commit = read_commit(storage, saved.version)
    except (DeltaError, LogGapError, OSError) as error:
        yield f"cannot be read at version {saved.version} of its log: {str(error)[:200]}"
        return
    if digest_of(files) != saved.files:
        yield f"has other files at version {saved.version} of its log"
        return
    if commit is not None and (commit.state.n, commit.state.files) != (saved.n, saved.files):
        yield f"has other content at version {saved.version} now"
    for file in with_footers(table, saved.version, files) if read else files:
        if what := _missing(storage, file) or (damage_of(storage, file) if read else None):
            yield f"{file.path}: {what}"


def _missing(storage: Storage, file: DataFile) -> str | None:
    stat = storage.stat(file.path)
    if stat is None:
        return "is missing"
    return None if stat.size == file.size else f"has {stat.size:,} bytes, had {file.size:,}"
