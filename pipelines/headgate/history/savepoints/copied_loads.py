"""Copies the loads of history with a pipeline. If the declared record of the copy changes, bronze
is read again, and what it has of the loads is read from these copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.declaration.kinds import BRONZE, kind_of
from headgate.failpoints import failpoint
from headgate.history.loads.requests import all_requests, load_folder, write_request
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table

_LOG = "/_delta_log/"


def copy_loads(layout: Layout, savepoint: Savepoint, to: Layout) -> None:
    """Copy the loads that bronze had read, at least in part, at a savepoint. A load that was done
    later continues in the copy. A load that a person has ended or held stays so. Repeatable."""
    paths = {path: saved for path, saved in savepoint.tables.items() if kind_of(path) == BRONZE}
    for path, saved in paths.items():
        bronze = Table(layout.storage, path, pipeline=savepoint.pipeline)
        state = next(lineage(bronze, saved.version)).state
        payload = BronzePayload.of(state)
        for request in all_requests(layout):
            load = payload.load(request.id)
            if load is None or BRONZE.path(request.source) != path:
                continue
            _copy(load_folder(layout, request.id), load_folder(to, request.id), state.epoch)
            goes_on = request.wish == "done" and not request.is_read(load)
            write_request(to, replace(request, wish="open") if goes_on else request)
            failpoint("clone.load_done")


def _copy(folder: Storage, to: Storage, epoch: int) -> None:
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
    found = log_folder(table)
    for version in found.entries:
        commit = read_commit(table, version)
        if commit is not None and commit.state.epoch > epoch:
            return
        yield from (path for at, path in found.paths if at == version)
