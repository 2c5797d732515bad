"""Copies a pipeline as of a savepoint into another root. No table of the original changes.

The copy of a table has its log up to the savepoint's version, the files that are live in it, and
the files of batches that downstream tables have not processed. An incomplete copy is marked, and no
driver starts on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from deltalake import DeltaTable

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.kinds import kind_of
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.savepoints.copied_loads import copy_loads
from headgate.history.savepoints.errors import FolderTakenError, SavepointError
from headgate.history.savepoints.holds import keeping
from headgate.history.savepoints.operations import files_of
from headgate.history.savepoints.savepoint import SavedTable, Savepoint
from headgate.history.savepoints.verify import verify
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import RELEASES, Layout, mark_copy
from headgate.lake.storage.places import parent
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.history import lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.table import Table

_UNFINISHED = Layout.document("clone")


class UnfinishedCloneError(HeadgateError, code=exit_codes.LOG_GAP):
    """A folder contains an incomplete clone."""


def clone(
    layout: Layout, savepoint: Savepoint, to: Layout, *, passing: Collection[str] = ()
) -> None:
    """Copy a pipeline as of a savepoint, without the tables ``passing``. Repeatable: after a kill,
    the next call continues.

    Raises SavepointError if a file is missing, FolderTakenError if there is a pipeline under ``to``
    already.
    """
    unfinished = read_document(to.storage, _UNFINISHED)
    if unfinished is None and any(to.storage.folders()):
        raise FolderTakenError(
            f"{to.storage.root}: there is a pipeline already",
            remedy="name another folder with --to",
        )
    if unfinished is not None and unfinished["savepoint"] != savepoint.id:
        raise _unfinished(to, unfinished)
    with keeping(layout, savepoint):
        _clone(layout, savepoint, to, passing)


def _clone(layout: Layout, savepoint: Savepoint, to: Layout, passing: Collection[str]) -> None:
    if not layout.storage.exists(Layout.savepoint(savepoint.id)):
        raise SavepointError(
            f"savepoint {savepoint.id} has been deleted meanwhile",
            remedy=f"other ones: {pipeline_command('savepoint list')}",
        )
    if problems := verify(layout, savepoint.pipeline, savepoint, passing=passing):
        raise SavepointError(
            f"savepoint {savepoint.id} cannot be cloned: {problems[0].table} {problems[0].what}",
            remedy=f"older ones: {pipeline_command('savepoint list')}",
        )
    begun = {"savepoint": savepoint.id, "root": _root(layout)}
    write_document(to.storage, _UNFINISHED, begun)
    tables = {path: saved for path, saved in savepoint.tables.items() if path not in passing}
    lowest = min((t.n for p, t in tables.items() if kind_of(p).is_dense), default=0)
    for path, saved in tables.items():
        table = Table(layout.storage, path, pipeline=savepoint.pipeline)
        _copy(table, to.storage.at(path), saved, lowest)
        failpoint("clone.table_done")
    for path in files_of(layout, savepoint):
        layout.storage.copy(path, to.storage)
    copy_loads(layout, savepoint, to)
    for stat in layout.storage.list(RELEASES, recursive=True):
        layout.storage.copy(stat.path, to.storage)
    if layout.storage.exists(kept := Layout.declaration(savepoint.definition)):
        layout.storage.copy(kept, to.storage)
    for path, saved in tables.items():
        table = Table(to.storage, path, pipeline=savepoint.pipeline)
        table.refresh()
        if digest_of(live_files(table.handle)) != saved.files:
            raise SavepointError(f"{path}: the copy differs from the savepoint", "try again")
        table.require_intact()
    mark_copy(to.storage)
    to.storage.remove(_UNFINISHED)


def require_whole(layout: Layout) -> None:
    """Raises UnfinishedCloneError if a clone into this folder is not finished."""
    if (unfinished := read_document(layout.storage, _UNFINISHED)) is not None:
        raise _unfinished(layout, unfinished)


def _unfinished(to: Layout, begun: Document) -> UnfinishedCloneError:
    id_ = begun["savepoint"]
    # The savepoint is under the root of the original.
    places = ("--to", _root(to), "--root", begun["root"])
    return UnfinishedCloneError(
        f"{to.storage.root}: the copy of savepoint {id_} was not finished",
        remedy=f"{pipeline_command('savepoint restore', id_, *places)}, or remove the folder",
    )


def _root(layout: Layout) -> str:
    return parent(layout.storage.root)


def _copy(table: Table, to: Storage, saved: SavedTable, lowest: int) -> None:
    storage = table.storage
    log = (path for at, path in log_folder(storage).paths if at <= saved.version)
    for path in (*_files(table, saved, lowest), *log):
        there = to.stat(path)
        if there is None or there.size != getattr(storage.stat(path), "size", None):
            storage.copy(path, to)


def _files(table: Table, saved: SavedTable, lowest: int) -> Iterator[str]:
    then = DeltaTable(table.storage.uri(), version=saved.version)
    live = {file.path for file in live_files(then)}
    yield from live
    for commit in lineage(table, saved.version):
        if commit.state.n <= lowest:
            return
        if commit.state.kind == "data":
            files = (file.path for file in commit.files if file.path not in live)
            yield from (path for path in files if table.storage.exists(path))
