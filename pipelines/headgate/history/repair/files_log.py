"""Refills the files log from bronze, whose records have the name, sequence and time of their file,
and from the landing folder, which has the sizes.

A sequence is the high part of the offsets in bronze, so no sequence is used twice. The entry of a
file that was not read yet cannot be refilled: its sequence is skipped, and the driver records the
file again when it lists the folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.declaration.kinds import FILES, name_of
from headgate.declaration.model import Pipeline, Source
from headgate.declaration.quantities import plural
from headgate.failpoints import failpoint
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.log import (
    FILES_LOG,
    SCHEMA,
    FilesLog,
    LoggedFile,
    counts,
    file_statuses,
    is_aside,
)
from headgate.history.repair.findings import Damage
from headgate.history.repair.logs import Log
from headgate.history.repair.version_history import VersionHistory
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import is_of_machine
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.record_shape import POSITION_BITS
from headgate.lake.tables.table import Table

NOBODY_KNOWS = "its entry was lost with a damaged files log"
_SHOWN = 20
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Filling:
    """``rows`` are to be recorded again under their sequences, ``bad`` are damaged files of the log
    that are removed. ``events`` is the highest number of the remaining events, ``last`` the last
    sequence, ``aside`` how many of the remaining files are set aside."""

    path: str
    rows: tuple[LoggedFile, ...] = ()
    bad: tuple[DataFile, ...] = ()
    events: int = 0
    last: int = 0
    aside: int = 0
    findings: tuple[Damage, ...] = ()

    @property
    def is_needed(self) -> bool:
        return bool(self.rows or self.bad)

    @property
    def descriptions(self) -> Iterator[str]:
        known = [file for file in self.rows if file.path]
        lost = [file.sequence for file in self.rows if not file.path]
        yield f"{self.path}: {plural(len(known), 'file')} to record again, as bronze knows them"
        if lost:
            yield (
                f"{self.path}: the names of the files {some_of(lost, _SHOWN)} are unknown: what "
                "was not read, or had been skipped or set aside, is recorded again if it is still "
                "there"
            )


def filling(
    layout: Layout, source: Source, log: Log | None, bronze: Table, read: BronzePayload
) -> Filling:
    """The entries that the files log of a source lacks. ``read`` is how far ``bronze`` has read."""
    path, data = FILES.path(source.name), layout.storage
    known: dict[int, LoggedFile] = {}
    bad: dict[str, str] = {}
    files: tuple[DataFile, ...] = ()
    events = 0
    if log is not None and log.stands is not None:
        bad = VersionHistory(log.table).bad_files()
        files = live_files(log.table.handle)
        sound = (file for file in files if file.path not in bad)
        known, events = file_statuses(_events(data.at(path), sound))
    last = max((*known, read.sequence))
    missing = [sequence for sequence in range(1, last + 1) if sequence not in known]
    there = _in_bronze(bronze) if missing else {}
    landing = Storage(source.reads.path)
    findings = [Damage(f"{path}/{file}", what, "file") for file, what in bad.items()]
    if missing:
        findings.append(Damage(path, f"files {some_of(missing, _SHOWN)} are not in it", "sequence"))
    return Filling(
        path,
        rows=tuple(_row(sequence, there, landing) for sequence in missing),
        bad=tuple(file for file in files if file.path in bad),
        events=events,
        last=last,
        aside=sum(map(is_aside, known.values())),
        findings=tuple(findings),
    )


def fill(layout: Layout, pipeline: Pipeline, wanted: Filling, epoch: int, now: datetime) -> None:
    """Write the missing entries in one commit. The table is created if it does not exist."""
    log = FilesLog.of(layout.storage, pipeline.name, name_of(wanted.path))
    log.shape.create(FILES_LOG)
    log.table.fence(epoch)
    events = enumerate(wanted.rows, start=wanted.events + 1)
    rows = [{"event": number, **vars(file), "at": now} for number, file in events]
    held = log.table.refresh()
    state = held.advanced_to(wanted.last, now).counting(counts(held, len(rows), wanted.aside))
    staged = stage_arrow(log.table, state, pa.Table.from_pylist(rows, SCHEMA), time_column="at")
    log.table.commit(state, staged, wanted.bad)
    failpoint("repair.filled")


def _events(data: Storage, files: Iterable[DataFile]) -> Iterator[dict[str, Any]]:
    for file in files:
        with data.open(file.path) as source:
            yield from pq.read_table(source).to_pylist()


def _in_bronze(bronze: Table) -> Mapping[int, tuple[str, datetime]]:
    """Path of the files that have records in bronze, and when they were seen, by sequence."""
    found: dict[int, tuple[str, datetime]] = {}
    for file in live_files(bronze.handle):
        try:
            with bronze.storage.open(file.path) as source:
                columns = ["partition", "offset", "file", "ingested_at"]
                rows = pq.read_table(source, columns=columns)
        except (OSError, pa.ArrowException) as error:
            if is_of_machine(error):
                raise
            continue  # damaged files of bronze are reported as damage of bronze
        # Without corrected copies and loads: their partition or offset is negative.
        is_own = pc.greater_equal(pc.min_element_wise(rows["partition"], rows["offset"]), 0)
        rows = rows.filter(is_own)
        sequence = pc.shift_right(rows.column("offset"), POSITION_BITS)
        grouped = rows.append_column("sequence", sequence).group_by("sequence")
        for row in grouped.aggregate([("file", "min"), ("ingested_at", "min")]).to_pylist():
            found[row["sequence"]] = row["file_min"], row["ingested_at_min"]
    return found


def _row(sequence: int, there: Mapping[int, tuple[str, datetime]], landing: Storage) -> LoggedFile:
    if sequence not in there:
        return LoggedFile(sequence, "", 0, _EPOCH, _EPOCH, "skipped", NOBODY_KNOWS)
    path, seen = there[sequence]
    seen = seen.astimezone(UTC)
    stat = landing.stat(path)
    # The size of a deleted or rewritten file is unknown. If it appears again, it is another file.
    size = stat.size if stat is not None and stat.modified == seen else 0
    return LoggedFile(sequence, path, size, seen, seen)
