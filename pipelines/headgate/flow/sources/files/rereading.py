"""Checks whether a landing folder, or the folder of a load, still has the recorded files."""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.log import FilesLog
from headgate.flow.sources.loading import LoadPlan
from headgate.lake.storage.files import Storage


def gone_files(place: DeployedSource, after: int) -> str | None:
    """A message about the files after sequence ``after`` that cannot be read again; None if all
    can."""
    log = FilesLog.of(place.storage, place.pipeline, place.source.name)
    if not log.table.exists:
        return "there is no log of the files that were read"
    try:
        log.load()
        FilesIntake(place.source.reads, log).require_all_again(after)
    except HeadgateError as error:
        return error.message
    return None


def require_unchanged(place: DeployedSource, after: int) -> None:
    """Raises FileChangedError if files have changed, so that a driver that continues after sequence
    ``after`` would stop."""
    log = FilesLog.of(place.storage, place.pipeline, place.source.name)
    if log.table.exists:
        log.load()
        FilesIntake(place.source.reads, log).require_unchanged(after)


def gone_of_load(place: DeployedSource, plan: LoadPlan, folder: Storage) -> str | None:
    """A message about the files of a load that cannot be read again; None if all can."""
    log = FilesLog.of(folder, place.pipeline, place.source.name)
    if not log.table.exists:
        return "there is no log of its files"
    try:
        log.load()
        reads = replace(place.source.reads, path=plan.details["folder"])
        FilesIntake(reads, log).readable(0, plan.ends["sequence"])
    except HeadgateError as error:
        return error.message
    return None
