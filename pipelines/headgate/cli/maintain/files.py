"""``headgate files list | accept | skip``: shows the log of landing files, records new times of
files, and skips broken ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import grid, respond
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
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """List the files recorded, in the order in which they are read."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    log, read = _open(declared, layout), _read_up_to(declared, layout)
    files, now = list(log.files), dict[int, str]()
    if changed:
        changes = _intake(declared, log).changes(read)
        files, now = [each.file for each in changes], {e.file.sequence: e.said for e in changes}
    shown = [
        {
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
    rows = (["" if value is None else str(value) for value in file.values()] for file in shown)
    columns = ["", "seq:", "path", "bytes:", "modified", "status", "reason"]
    table = grid(*columns, *(["now"] if changed else []), rows=rows)
    document = {"pipeline": declared.name, "files": shown}
    names = sorted(_intake(declared, log).list_unnamed())
    said = f"not recorded, because their names are not UTF-8: {some_of(names)}; rename them"
    respond(json, document | {"unnamed": names}, table, *([said] if names else []))


@app.command("accept")
def accept_files(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Record the new times of files that have the same size, as after a restore from a backup.

    Only for files whose contents are the same: contents are not compared. No record is read twice,
    and none is lost. Records keep the time at which they were seen.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    with _held(declared, layout, "files accept") as log:
        changes = _intake(declared, log).changes(_read_up_to(declared, layout))
        accepted = [
            replace(each.file, modified=each.now.modified)
            for each in changes
            if each.now is not None and each.is_of_time
        ]
        log.append(accepted, datetime.now(UTC))
    left = len(changes) - len(accepted)
    document = {"pipeline": declared.name, "accepted": len(accepted), "left": left}
    shown = [f"recorded the new times of {plural(len(accepted), 'file')}"]
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
    log = _open(declared, layout)
    named = [_get(log, each) for each in dict.fromkeys(sequences or ())]
    if set_aside:
        named = [file for file in log.files if is_aside(file)]
    if all(map(is_aside, named)) and not changed and _is_run(layout):
        skipped = _skipped_by_driver(declared, layout, named, reason)
    else:
        with _held(declared, layout, "files skip") as log:
            read, intake = _read_up_to(declared, layout), _intake(declared, log)
            wanted = [
                FileChange(file, intake.landing.stat(file.path))
                for file in (_get(log, each.sequence) for each in named)
            ]
            if changed:
                wanted = list(intake.changes(read))
            skipped = [_skipped(each, read) for each in wanted]
            log.append([replace(file, reason=reason) for file in skipped], datetime.now(UTC))
    listed = [{"sequence": f.sequence, "path": f.path, "status": f.status} for f in skipped]
    said = f"skipped {plural(len(skipped), 'file')}; the ledger lists them"
    if not skipped:
        said = "no file is set aside" if set_aside else "no file has changed"
    if len(skipped) == 1:
        said = f"skipped file {skipped[0].sequence} {skipped[0].path}; the ledger lists it"
    again = [] if _is_run(layout) or not skipped else [command("run")]
    respond(json, {"pipeline": declared.name, "skipped": listed}, said, *again)


def _is_run(layout: Layout) -> bool:
    """Whether a driver runs that carries out requests."""
    jobs = probe(layout, datetime.now(UTC))
    return any(job.is_awaited and not job.operation and "bronze" in job.layers for job in jobs)


def _skipped_by_driver(
    declared: Pipeline, layout: Layout, files: Sequence[LoggedFile], reason: str
) -> Sequence[LoggedFile]:
    """Ask the driver to skip files that are set aside, and wait. Raises NotAliveError if it does
    not do so."""
    sequences = tuple(file.sequence for file in files)
    wanted = SkipRequest(_source(declared).name, sequences, reason)
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
        log = _open(declared, layout)
        files = [_get(log, sequence) for sequence in sequences]
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


@contextmanager
def _held(declared: Pipeline, layout: Layout, verb: str) -> Iterator[FilesLog]:
    """The files log, under the lease of all layers: no driver of the pipeline may start now, and a
    job must not hold two epochs."""
    log = _open(declared, layout)
    with Lease(layout, LAYERS, declared.name, verb).held() as epoch:
        log.table.fence(epoch)
        log.load()
        yield log


def _intake(declared: Pipeline, log: FilesLog) -> FilesIntake:
    return FilesIntake(_source(declared).reads, log)


def _open(declared: Pipeline, layout: Layout) -> FilesLog:
    log = FilesLog.of(layout.storage, declared.name, _source(declared).name)
    try:
        log.load()
    except FileNotFoundError as error:
        raise HeadgateError(
            f"{declared.name} has no files log under {layout.storage.root}",
            remedy=command("run", "--once"),
        ) from error
    return log


def _get(log: FilesLog, sequence: int) -> LoggedFile:
    file = log.get(sequence)
    if file is None:
        raise HeadgateError(
            f"no file has sequence {sequence}; the last is {log.last_sequence}",
            remedy=command("files list"),
        )
    return file


def _source(declared: Pipeline) -> Source:
    """The source that has a files log. Raises HeadgateError if no source has one."""
    titles = []
    for source in declared.sources.values():
        kind = connector_of(source)
        if FILES in kind.keeps:
            return source
        titles.append(f"its source {source.name} is {kind.title}")
    raise HeadgateError(
        f"{declared.name} reads no files: {', '.join(titles)}", remedy=command("status")
    )


def _read_up_to(declared: Pipeline, layout: Layout) -> int:
    """The sequence up to which bronze has ingested the log."""
    path = BRONZE.path(_source(declared).name)
    bronze = Table(layout.storage, path, pipeline=declared.name)
    return BronzePayload.of(bronze.refresh()).sequence


def _status(file: LoggedFile, read: int) -> str:
    if file.status != "recorded":
        return file.status.replace("_", " ")
    return "read" if file.sequence <= read else "waiting"
