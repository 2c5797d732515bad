"""``headgate files list | accept | skip``: shows the log of landing files, records new times of
files, and skips broken ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, SourceName, command
from headgate.cli.output import grid, respond
from headgate.cli.sources import SourceLabels, the_source
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE, FILES
from headgate.declaration.model import Pipeline, Source
from headgate.declaration.quantities import plural
from headgate.driver.lease import Lease
from headgate.errors import HeadgateError, UsageError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.changes import FileChange
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.log import FilesLog, LoggedFile, is_aside
from headgate.lake.control.driver_requests import SkipRequest, ask_to_skip, asked_to_skip
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import probe
from headgate.supervision.local import POLL_EVERY, STOPS_WITHIN, NotAliveError

app = typer.Typer(help="The landing files of a pipeline.", no_args_is_help=True)


@app.command("list")
def list_files(
    pipeline: PipelineName,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only files that were set aside, skipped or withdrawn.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only files that are not as they were recorded.")
    ] = False,
    source: SourceName = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """List the files recorded, in the order in which they are read."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    labels, shown, unnamed = SourceLabels(declared.sources), [], {}
    for each in _landings(declared, layout, source):
        read, name = each.read_up_to(), each.source.name
        files, now = list(each.log.files), dict[int, str]()
        if changed:
            changes = each.intake.changes(read)
            files, now = [c.file for c in changes], {c.file.sequence: c.said for c in changes}
        shown += [
            {
                **labels.field(name),
                "sequence": f.sequence,
                "path": f.path,
                "size": f.size,
                "modified": f.modified.isoformat(),
                "status": _status(f, read),
                "reason": f.reason,
                **({"now": now[f.sequence]} if changed else {}),
            }
            for f in files
            if not unread or f.status != "recorded"
        ]
        unnamed[name] = sorted(each.intake.list_unnamed())
    rows = (["" if value is None else str(value) for value in file.values()] for file in shown)
    columns = ["", *labels.header, "seq:", "path", "bytes:", "modified", "status", "reason"]
    table = grid(*columns, *(["now"] if changed else []), rows=rows)
    document = {"pipeline": declared.name, "files": shown}
    document |= labels.facts({name: {"unnamed": names} for name, names in unnamed.items()})
    said = (
        f"{labels.before(name)}not recorded, because their names are not UTF-8: {some_of(names)}; "
        "rename them"
        for name, names in unnamed.items()
        if names
    )
    respond(json, document, table, *said)


@app.command("accept")
def accept_files(
    pipeline: PipelineName,
    source: SourceName = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Record the new times of files that have the same size, as after a restore from a backup.

    Only for files whose contents are the same: contents are not compared. No record is read twice,
    and none is lost. Records keep the time at which they were seen.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    number = left = 0
    with _held(declared, layout, source, "files accept") as landings:
        for each in landings:
            changes = each.intake.changes(each.read_up_to())
            accepted = [
                replace(change.file, modified=change.now.modified)
                for change in changes
                if change.now is not None and change.is_of_time
            ]
            each.log.append(accepted, datetime.now(UTC))
            number, left = number + len(accepted), left + len(changes) - len(accepted)
    document = {"pipeline": declared.name, "accepted": number, "left": left}
    shown = [f"recorded the new times of {plural(number, 'file')}"]
    if left:
        shown += [
            f"{plural(left, 'file')} {'has' if left == 1 else 'have'} another size, or vanished "
            "before being read:",
            command("files list", "--changed"),
        ]
    respond(json, document, *shown, *([] if left else [command("run")]))


@app.command("skip")
def skip_files(
    pipeline: PipelineName,
    sequences: Annotated[
        list[int] | None, typer.Argument(metavar="SEQ...", help="As `files list` shows them.")
    ] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="All files that `files list --changed` shows.")
    ] = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="All files that are set aside.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Kept in the ledger.")
    ] = "skipped by hand",
    source: SourceName = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Never read files (again) that were rewritten, have vanished or cannot be read.

    Files that are set aside can be skipped while the pipeline runs.
    """
    if bool(sequences) + changed + set_aside != 1:
        said = "name the files, or all that have changed, or all that are set aside"
        raise UsageError(said, command("files list"))
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    if sequences:
        source = _source(declared, source).name
    landings, labels = _landings(declared, layout, source), SourceLabels(declared.sources)
    named = {each.source.name: each.files(sequences or (), set_aside) for each in landings}
    aside = all(is_aside(file) for files in named.values() for file in files)
    skipped: list[tuple[str, LoggedFile]] = []
    if aside and not changed and _is_run(layout):
        for each in landings:
            done = _skipped_by_driver(each, layout, named[each.source.name], reason)
            skipped += [(each.source.name, file) for file in done]
    else:
        with _held(declared, layout, source, "files skip") as landings:
            for each in landings:
                done = _skip(each, named[each.source.name], reason, changed=changed)
                skipped += [(each.source.name, file) for file in done]
    listed = [
        {**labels.field(name), "sequence": f.sequence, "path": f.path, "status": f.status}
        for name, f in skipped
    ]
    said = f"skipped {plural(len(skipped), 'file')}; the ledger lists them"
    if not skipped:
        said = "no file is set aside" if set_aside else "no file has changed"
    if len(skipped) == 1:
        ((name, file),) = skipped
        said = f"{labels.before(name)}skipped file {file.sequence} {file.path}; the ledger lists it"
    again = [] if _is_run(layout) or not skipped else [command("run")]
    respond(json, {"pipeline": declared.name, "skipped": listed}, said, *again)


def _skip(
    landing: _Landing, named: Sequence[LoggedFile], reason: str, *, changed: bool
) -> Sequence[LoggedFile]:
    """Skip the files that are named, or all that have ``changed``, in a log that is held."""
    read, intake = landing.read_up_to(), landing.intake
    wanted = [
        FileChange(file, intake.landing.stat(file.path))
        for file in (landing.get(each.sequence) for each in named)
    ]
    if changed:
        wanted = list(intake.changes(read))
    skipped = [replace(_skipped(each, read), reason=reason) for each in wanted]
    landing.log.append(skipped, datetime.now(UTC))
    return skipped


def _is_run(layout: Layout) -> bool:
    """Whether a driver runs that carries out requests."""
    jobs = probe(layout, datetime.now(UTC))
    return any(job.is_awaited and not job.operation and "bronze" in job.layers for job in jobs)


def _skipped_by_driver(
    landing: _Landing, layout: Layout, files: Sequence[LoggedFile], reason: str
) -> Sequence[LoggedFile]:
    """Ask the driver to skip files that are set aside, and wait. Raises NotAliveError if it does
    not do so."""
    sequences = tuple(file.sequence for file in files)
    wanted = SkipRequest(landing.source.name, sequences, reason)
    deadline = time.monotonic() + STOPS_WITHIN
    while any(map(is_aside, files)):
        # A request of another command may take the place of this one: then this asks again.
        if asked_to_skip(layout) is None:
            ask_to_skip(layout, wanted)
        while asked_to_skip(layout) is not None:
            if time.monotonic() > deadline or not _is_run(layout):
                later = "; its next start does" if asked_to_skip(layout) == wanted else ""
                raise NotAliveError(
                    f"the driver has not skipped the files{later}", remedy=command("status")
                )
            time.sleep(POLL_EVERY)
        landing.load()
        files = [landing.get(sequence) for sequence in sequences]
        if any(map(is_aside, files)):
            time.sleep(POLL_EVERY)
    return files


def _skipped(change: FileChange, read: int) -> LoggedFile:
    """The file with its new status. Raises HeadgateError if its records stay in bronze as they
    are."""
    file, now = change.file, change.now
    # Record the current size and time, so that the same bytes do not count as a rewrite later.
    current = file if now is None else replace(file, size=now.size, modified=now.modified)
    was_read = file.sequence <= read and file.status == "recorded"
    if was_read and now is not None and current == file:
        raise HeadgateError(
            f"file {file.sequence} {file.path} has been read already, and has not changed since",
            remedy="its records are in bronze and stay there",
        )
    is_withdrawn = was_read or file.status == "withdrawn"
    return replace(current, status="withdrawn" if is_withdrawn else "skipped")


class _Landing:
    """The files log of a source. Raises HeadgateError if there is none."""

    def __init__(self, declared: Pipeline, layout: Layout, source: Source) -> None:
        self.source, self._pipeline, self._storage = source, declared.name, layout.storage
        self.load()

    def load(self) -> None:
        self.log = FilesLog.of(self._storage, self._pipeline, self.source.name)
        try:
            self.log.load()
        except FileNotFoundError as error:
            raise HeadgateError(
                f"{self._pipeline} has no files log under {self._storage.root}",
                remedy=command("run", "--once"),
            ) from error

    @property
    def intake(self) -> FilesIntake:
        return FilesIntake(self.source, self.log)

    def read_up_to(self) -> int:
        """The sequence up to which bronze has ingested the log."""
        bronze = Table(self._storage, BRONZE.path(self.source.name), pipeline=self._pipeline)
        return BronzePayload.of(bronze.refresh()).sequence

    def files(self, sequences: Iterable[int], set_aside: bool) -> Sequence[LoggedFile]:
        """The files with these sequences, or all that are ``set_aside``. Raises HeadgateError."""
        if set_aside:
            return [file for file in self.log.files if is_aside(file)]
        return [self.get(each) for each in dict.fromkeys(sequences)]

    def get(self, sequence: int) -> LoggedFile:
        file = self.log.get(sequence)
        if file is None:
            raise HeadgateError(
                f"no file has sequence {sequence}; the last is {self.log.last_sequence}",
                remedy=command("files list"),
            )
        return file


@contextmanager
def _held(
    declared: Pipeline, layout: Layout, source: str | None, verb: str
) -> Iterator[Sequence[_Landing]]:
    """The files logs, under the lease of all layers: no driver of the pipeline may start now, and a
    job must not hold two epochs."""
    landings = _landings(declared, layout, source)
    with Lease(layout, LAYERS, declared.name, verb).held() as epoch:
        for each in landings:
            each.log.table.fence(epoch)
            each.log.load()
        yield landings


def _landings(declared: Pipeline, layout: Layout, source: str | None) -> Sequence[_Landing]:
    """The files logs of all sources, or of the one that --source names. Raises HeadgateError."""
    known = _sources(declared)
    found = known.values() if source is None else [_source(declared, source)]
    return [_Landing(declared, layout, each) for each in found]


def _source(declared: Pipeline, word: str | None) -> Source:
    return the_source(declared, word, _sources(declared), "source of files")


def _sources(declared: Pipeline) -> dict[str, Source]:
    """The sources that have a files log. Raises HeadgateError if no source has one."""
    found = {n: s for n, s in declared.sources.items() if FILES in connector_of(s).keeps}
    if not found:
        titles = (f"its source {n} is {connector_of(s).title}" for n, s in declared.sources.items())
        raise HeadgateError(
            f"{declared.name} reads no files: {', '.join(titles)}", remedy=command("status")
        )
    return found


def _status(file: LoggedFile, read: int) -> str:
    if file.status != "recorded":
        return file.status.replace("_", " ")
    return "read" if file.sequence <= read else "waiting"
