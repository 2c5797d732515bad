"""Loads of files: which files are loaded, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.errors import OtherKindError, SourceError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.declared import FileOrder, FilesSource
from headgate.flow.sources.files.landing import require_apart
from headgate.flow.sources.files.listing import IGNORED_PREFIXES, LARGEST_FILE, in_order
from headgate.flow.sources.files.log import FILES_LOG, FilesLog, LoggedFile
from headgate.flow.sources.files.micro_batches import FilesMicroBatches, FilesRange
from headgate.flow.sources.loading import LoadPlan, LoadWanted, StepBounds, Steps
from headgate.flow.sources.micro_batches import SourceContext
from headgate.lake.storage.files import Stat, Storage
from headgate.lake.storage.globs import compiled_pattern, split_pattern
from headgate.lake.storage.places import absolute, overlap, parent
from headgate.lake.storage.tree import tree_of
from headgate.lake.tables.load import MOST_OFFSET
from headgate.lake.tables.record_shape import offset_of

MOST_FILES = MOST_OFFSET // offset_of(1)
_LEAST_BYTES, _FIRST_BYTES = 1 << 20, 16 << 20


class FilesLoad(FilesMicroBatches):
    """The files of a load, in batches of at most the stream's limits (``Steps``)."""

    def __init__(self, log: FilesLog, context: SourceContext, end: int) -> None:
        super().__init__(log, context)
        self._end = end
        _, most = super().limits
        bounds = StepBounds.within(_LEAST_BYTES, _FIRST_BYTES, most)
        self._steps = Steps(bounds, context.is_shared)

    @property
    def limits(self) -> tuple[int, int]:
        """Files have a limit in proportion, because small ones take time, too."""
        files, size = super().limits
        limit = self._steps.limit
        return max(files * limit // size, 1), limit

    def _pending(self, after: int) -> Sequence[LoggedFile]:
        return [file for file in super()._pending(after) if file.sequence <= self._end]

    def batch_took(self, planned: FilesRange, took: timedelta) -> None:
        files = self.log.between(planned.start, planned.end)
        self._steps.took(took, sum(file.size for file in files if file.status == "recorded"))


def plan_load(
    place: DeployedSource, wanted: LoadWanted, folder: Storage, now: datetime
) -> LoadPlan:
    """Records the files in a files log that belongs to the load. Raises SourceError."""
    if wanted.files is None:
        raise OtherKindError(f"{place.source.name} reads files", "name them: --files 'archive/**'")
    source: FilesSource = place.source.reads
    base, found = matching(wanted.files)
    require_elsewhere(base, source, wanted.files)
    root = parent(place.storage.root)
    require_apart(base, root, "move the history to a folder of its own, and name that")
    files = files_in_time(found, source.order, wanted.begin, wanted.end)
    if not files:
        raise _nothing_meant(wanted.files, source.order)
    if (large := next((each for each in files if each.size >= LARGEST_FILE), None)) is not None:
        raise SourceError(f"{large.path}: a file above 64 GiB cannot be read", "split it")
    if len(files) > MOST_FILES:
        said = f"{len(files):,} files match, and a load has at most {MOST_FILES:,}"
        raise SourceError(said, "load them in several parts")
    log = FilesLog.of(folder, place.pipeline, place.source.name)
    log.shape.create(FILES_LOG)
    log.load()
    log.record(files, now)
    what = f"{_number(files)} of {wanted.files}"
    ends, details = {"sequence": len(files)}, {"folder": base}
    return LoadPlan({"sequence": 0}, ends, what, "files", details)


def reader_of_load(context: SourceContext, plan: LoadPlan, folder: Storage) -> FilesLoad:
    """The reader of a load. Reading raises FileChangedError if a file has changed."""
    declared: FilesSource = context.source.reads
    reads = replace(declared, path=plan.details["folder"])
    log = FilesLog.of(folder, context.pipeline, context.source.name)
    log.table.fence(context.epoch)
    log.load()
    context = replace(context, source=replace(context.source, reads=reads))
    return FilesLoad(log, context, plan.ends["sequence"])


def unread_files(folder: Storage, pipeline: str, source: str) -> Mapping[str, str]:
    """The files of a load that cannot be read, and why."""
    log = FilesLog.of(folder, pipeline, source)
    if not log.table.exists:
        return {}
    log.load()
    return {file.path: str(file.reason) for file in log.not_read}


def require_elsewhere(base: str, source: FilesSource, pattern: str) -> None:
    """Raises SourceError if the folder overlaps the landing folder, which the stream reads."""
    if overlap(base, source.path):
        raise SourceError(
            f"{pattern} reaches into the landing folder {source.path}, which the stream reads",
            remedy="move the history to a folder of its own, and name that",
        )


def _nothing_meant(pattern: str, order: FileOrder) -> SourceError:
    """The error of a load without files: no file matches, or none was written in the given time."""
    if not (files := files_in_time(matching(pattern)[1], order, None, None)):
        return SourceError(f"no file matches {pattern}", "quote the pattern; ** is any folder")
    first, last = (f"{at(each.modified for each in files):%F %T}Z" for at in (min, max))
    said = f"{_number(files)} of {pattern}: none was written between --from and --to"
    return SourceError(said, f"choose other times: they were written from {first} to {last}")


def _number(files: Sequence[Stat]) -> str:
    return f"{len(files):,} file{'' if len(files) == 1 else 's'}"


def matching(pattern: str) -> tuple[str, Iterable[Stat]]:
    """The folder of a pattern, and the files in it that match. A pattern without a special
    character names one file, or all files in a folder. In the path of the working directory, no
    character is special. Raises SourceError."""
    base, rest = split_pattern(pattern)
    base = absolute(base or ("/" if pattern.startswith("/") else "."))
    if not rest:
        parent, _, name = base.rpartition("/")
        alone = Storage(parent).stat(name)
        if alone is not None and not name.startswith(IGNORED_PREFIXES):
            return parent, [alone]
        rest = "**"
    try:
        matches = compiled_pattern(rest)
    except re.error as error:
        said = f"{pattern} is not a pattern: {error.msg}"
        raise SourceError(said, "a range of characters is written as [a-z]") from error
    tree = tree_of(Storage(base), IGNORED_PREFIXES)
    if tree.unnamed:
        raise SourceError(
            f"{base}: names that are not UTF-8 cannot be recorded: {some_of(sorted(tree.unnamed))}",
            remedy="give these files and folders other names, or move them out of the folder",
        )

    def is_meant(path: str) -> bool:
        return matches.fullmatch(path) is not None

    return base, (each for each in tree.named(is_meant) if is_meant(each.path))


def files_in_time(
    found: Iterable[Stat], order: FileOrder, begin: datetime | None, end: datetime | None
) -> list[Stat]:
    """The files that were written in [begin, end), in the order in which they are read."""

    def is_meant(each: Stat) -> bool:
        is_early = begin is not None and each.modified < begin
        is_late = end is not None and each.modified >= end
        return not (is_early or is_late)

    return in_order(filter(is_meant, found), order)
