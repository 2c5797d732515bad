"""Copies a pipeline as of a savepoint into another root. No table of the original changes.

The copy of a table has its log up to the savepoint's version, the files that are live in it, and
the files of batches that downstream tables have not processed. An incomplete copy is marked, and no
driver starts on it. Loads of history are copied, too: if the declared record of the copy changes,
bronze is read again, and what it has of the loads is read from these copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from deltalake import DeltaTable

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.kinds import BRONZE, kind_of
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.loads.requests import load_folder, loads_of
from headgate.history.savepoints.errors import FolderTakenError, SavepointError
from headgate.history.savepoints.holds import holding_savepoint
from headgate.history.savepoints.savepoint import SavedTable, Savepoint, operation_files
from headgate.history.savepoints.verify import verify_savepoint
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import RELEASES, Layout, mark_copy
from headgate.lake.storage.places import parent
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.decisions import ControlTable, Decisions
from headgate.lake.tables.history import lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import list_log, read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table

_UNFINISHED = Layout.document("clone")
_LOG = "/_delta_log/"


class UnfinishedCloneError(HeadgateError, code=exit_codes.LOG_GAP):
    """A folder contains an incomplete clone."""


def clone_savepoint(
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
    with holding_savepoint(layout, savepoint):
        _clone(layout, savepoint, to, passing)


def _clone(layout: Layout, savepoint: Savepoint, to: Layout, passing: Collection[str]) -> None:
    if not layout.storage.exists(Layout.savepoint(savepoint.id)):
        raise SavepointError(
            f"savepoint {savepoint.id} has been deleted meanwhile",
            remedy=f"other ones: {pipeline_command('savepoint list')}",
        )
    if problems := verify_savepoint(layout, savepoint.pipeline, savepoint, passing=passing):
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
    decisions = ControlTable.of(layout.storage, savepoint.pipeline).refresh()
    for path in operation_files(decisions, savepoint):
        layout.storage.copy(path, to.storage)
    copy_loads(layout, savepoint, decisions, to)
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


def require_finished_clone(layout: Layout) -> None:
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
    log = (path for at, path in list_log(storage).paths if at <= saved.version)
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


def copy_loads(layout: Layout, savepoint: Savepoint, decisions: Decisions, to: Layout) -> None:
    """Copy the folders of the loads that bronze had read, at least in part, at a savepoint. A load
    that was not done then continues in the copy. Repeatable."""
    loads = loads_of(decisions.until(savepoint.decision))
    for source, saved in savepoint.bronze.items():
        bronze = Table(layout.storage, BRONZE.path(source), pipeline=savepoint.pipeline)
        state = next(lineage(bronze, saved.version)).state
        payload = BronzePayload.of(state)
        for load in loads:
            if load.source == source and payload.load(load.id) is not None:
                folders = load_folder(layout, load.id), load_folder(to, load.id)
                _copy_load_folder(*folders, state.epoch)
                failpoint("clone.load_done")


def _copy_load_folder(folder: Storage, to: Storage, epoch: int) -> None:
    """Copy what a source keeps for a load. Of logs, copy only the entries of drivers up to
    ``epoch``: a driver of the copy has a higher epoch, but newer entries may have a still higher
    one."""
    # The logs are listed before the files that their entries name.
    tables = {path.partition(_LOG)[0] for path in _paths(folder) if _LOG in path}
    logs = [f"{path}/{entry}" for path in tables for entry in _entries(folder.at(path), epoch)]
    files = [path for path in _paths(folder) if _LOG not in path]
    for path in (*files, *logs):
        folder.copy(path, to)


def _paths(folder: Storage) -> tuple[str, ...]:
    return tuple(stat.path for stat in folder.list(recursive=True))


def _entries(table: Storage, epoch: int) -> Iterator[str]:
    found = list_log(table)
    for version in found.entries:
        commit = read_commit(table, version)
        if commit is not None and commit.state.epoch > epoch:
            return
        yield from (path for at, path in found.paths if at == version)
