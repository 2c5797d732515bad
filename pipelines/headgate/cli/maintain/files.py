"""``headgate files list | skip``: shows the log of landing files, and skips a broken file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import grid, respond
from headgate.declaration.kinds import BRONZE, FILES
from headgate.declaration.model import Pipeline, Source
from headgate.errors import HeadgateError
from headgate.jobs.lease import Lease
from headgate.sources.contract import connector_of
from headgate.sources.files.log import FilesLog, FileStatus, LoggedFile
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.table import Table

app = typer.Typer(help="The landing files of a pipeline.", no_args_is_help=True)


@app.command("list")
def list_files(
    pipeline: PipelineName,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only files that were set aside, skipped or withdrawn.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """List the files recorded, in the order in which they are read."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    log, read = _open(declared, layout), _read_up_to(declared, layout)
    shown = [
        {
            "sequence": f.sequence,
            "path": f.path,
            "size": f.size,
            "modified": f.modified.isoformat(),
            "status": _status(f, read),
            "reason": f.reason,
        }
        for f in log.files
        if not unread or f.status != "recorded"
    ]
    rows = (["" if value is None else str(value) for value in file.values()] for file in shown)
    table = grid("", "seq:", "path", "bytes:", "modified", "status", "reason", rows=rows)
    respond(json, {"pipeline": declared.name, "files": shown}, table)


@app.command("skip")
def skip_file(
    pipeline: PipelineName,
    sequence: Annotated[int, typer.Argument(metavar="SEQ", help="As `files list` shows it.")],
    reason: Annotated[
        str, typer.Option("--reason", help="Kept in the ledger.")
    ] = "skipped by hand",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Never read a file (again) that was rewritten, has vanished or cannot be read."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    log = _open(declared, layout)
    landing = Storage(_source(declared).reads.path)
    _get(log, sequence)
    # Lease all layers: no fused driver may start now, and a job must not hold two epochs.
    lease = Lease(layout, LAYERS, declared.name, "files skip")
    with lease.held() as epoch:
        log.table.fence(epoch)
        log.load()
        known = _get(log, sequence)
        stat = landing.stat(known.path)
        # Record the current size and time, so that the same bytes do not count as a rewrite later.
        skipped = known if stat is None else replace(known, size=stat.size, modified=stat.modified)
        was_read = sequence <= _read_up_to(declared, layout) and known.status == "recorded"
        is_withdrawn = was_read or known.status == "withdrawn"
        if was_read and stat is not None and skipped == known:
            raise HeadgateError(
                f"file {sequence} {known.path} has been read already, and has not changed since",
                remedy="its records are in bronze and stay there",
            )
        status: FileStatus = "withdrawn" if is_withdrawn else "skipped"
        log.append([replace(skipped, status=status, reason=reason)], datetime.now(UTC))
    respond(
        json,
        {"pipeline": declared.name, "skipped": sequence, "path": known.path},
        f"skipped file {sequence} {known.path}; the ledger lists it",
        command("run"),
    )


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
