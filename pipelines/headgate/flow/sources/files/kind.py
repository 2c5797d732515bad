"""The kind of source that reads a landing folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import Connector, Session
from headgate.declaration.kinds import FILES as FILES_LOG
from headgate.declaration.model import Record, RecordFormat
from headgate.declaration.quantities import format_duration, format_size
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.flow.sources.deployed_source import DeployedSource, UnreadInput
from headgate.flow.sources.files.declared import FILES, FilesSource
from headgate.flow.sources.files.landing import require_apart, require_landing
from headgate.lake.storage.places import at_home, is_uri

if TYPE_CHECKING:
    from datetime import datetime

    from headgate.flow.sources.loading import LoadPlan, LoadWanted
    from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.lake.storage.files import Storage
    from headgate.lake.tables.payloads.bronze import BronzePayload
    from headgate.lake.tables.table_schema import TableSchema


class Files(Connector[FilesSource]):
    key = FILES
    title = "files"
    place = "file"
    not_meant = frozenset(
        {"path", "settle", "max_files_per_batch", "max_bytes_per_batch", "csv_fields"}
    )
    keeps = (FILES_LOG,)
    why_no_gap = f"reads files; find the missing one, and skip it: {pipeline_command('files list')}"

    def build(self, section: Section, report: ProblemReport, project: Path) -> FilesSource | None:
        csv = section.section("csv")
        format_, path = section.text("format"), section.text("path")
        if csv and format_ and format_ != "csv":
            report.at(csv, f"is only for format csv, but the format is {format_}")
        if csv and (escape := csv.fields.get("escape")):
            delimiter = csv.fields.get("delimiter")
            if escape.value == (delimiter.value if delimiter else FilesSource.csv_delimiter):
                report.at(escape, "must differ from the delimiter")
        if format_ is None or path is None:
            return None
        values: dict[str, Any] = {
            name: field.value
            for name, field in section.fields.items()
            if name in ("order", "settle", "max_files_per_batch", "max_bytes_per_batch")
        }
        if csv:
            values |= {f"csv_{name}": field.value for name, field in csv.fields.items()}
        return FilesSource(_located(path, project), format_, **values)  # type: ignore[arg-type]

    def with_record(self, reads: FilesSource, record: Record) -> FilesSource:
        if reads.format != "csv":
            return reads
        return replace(reads, csv_fields=tuple(column.in_record for column in record.schema))

    def plan(self, reads: FilesSource) -> dict[str, Any]:
        described: dict[str, Any] = {
            "path": reads.path,
            "format": reads.format,
            "order": reads.order,
            "settle": format_duration(reads.settle),
            "max_files_per_batch": reads.max_files_per_batch,
            "max_bytes_per_batch": format_size(reads.max_bytes_per_batch),
        }
        if reads.format == "csv":
            described["csv"] = {
                "header": reads.csv_header,
                "delimiter": reads.csv_delimiter,
                **({"escape": reads.csv_escape} if reads.csv_escape else {}),
                "multiline": reads.csv_multiline,
            }
        return described

    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        most = f"{planned['max_files_per_batch']} files, {planned['max_bytes_per_batch']}"
        return [
            f"  files    {planned['path']} ({planned['format']}, by {planned['order']})",
            f"  batch    at most {most}",
        ]

    def format(self, reads: FilesSource) -> RecordFormat:
        return reads.format

    def datasets(self, reads: FilesSource) -> Iterable[tuple[str, str]]:
        return (("file", reads.path),)

    def require_apart(self, reads: FilesSource, root: str, declaration: Path) -> None:
        require_apart(reads.path, root, f"choose another root, or another folder in {declaration}")

    def require_input(self, place: DeployedSource, declaration: Path) -> None:
        from headgate.lake.tables.log import newest_commit

        log = newest_commit(place.storage.at(FILES_LOG.path(place.source.name)))
        # The log is created by the first driver, which has seen the folder.
        require_landing(place.source.reads, declaration, was_there=log is not None)

    def require_unchanged(self, place: DeployedSource, offsets: Mapping[str, int]) -> None:
        from headgate.flow.sources.files.intake import require_unchanged

        require_unchanged(place, _sequence(offsets))

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        from headgate.flow.sources.files.intake import gone_files

        return gone_files(place, _sequence(offsets))

    def missing(self, place: DeployedSource) -> str | None:
        from headgate.flow.sources.files.intake import gone_files

        return gone_files(place, after=0)

    def document(self, place: DeployedSource, where: str | None, value: bytes) -> bytes:
        from headgate.flow.sources.files.csv_rows import record_document

        return record_document(place.source.reads, where, value)

    def tables(self, place: DeployedSource) -> tuple[TableSchema, ...]:
        from headgate.flow.sources.files.log import FilesLog

        return (FilesLog.of(place.storage, place.pipeline, place.source.name).shape,)

    def micro_batches(self, context: SourceContext, at: BronzePayload) -> MicroBatchSource[Any]:
        from headgate.flow.sources.files.log import FilesLog
        from headgate.flow.sources.files.micro_batches import FilesMicroBatches

        log = FilesLog(context.tables[FILES_LOG.name])
        log.load()
        return FilesMicroBatches(log, context)

    def plan_load(
        self,
        place: DeployedSource,
        wanted: LoadWanted,
        folder: Storage,
        session: Session,
        now: datetime,
    ) -> LoadPlan:
        from headgate.flow.sources.files.loading import plan_load

        return plan_load(place, wanted, folder, now)

    def loading(
        self, context: SourceContext, at: BronzePayload, plan: LoadPlan, folder: Storage
    ) -> MicroBatchSource[Any]:
        from headgate.flow.sources.files.loading import reader_of_load

        return reader_of_load(context, plan, folder)

    def gone_of_load(self, place: DeployedSource, plan: LoadPlan, folder: Storage) -> str | None:
        from headgate.flow.sources.files.intake import gone_of_load

        return gone_of_load(place, plan, folder)

    def passed_over(self, place: DeployedSource, folder: Storage) -> Mapping[str, str]:
        from headgate.flow.sources.files.loading import unread_files

        return unread_files(folder, place.pipeline, place.source.name)

    def unread(self, place: DeployedSource) -> tuple[UnreadInput, ...] | None:
        from headgate.flow.sources.files.log import FilesLog

        log = FilesLog.of(place.storage, place.pipeline, place.source.name)
        log.load()
        return tuple(UnreadInput(f.sequence, f.path, f.status, str(f.reason)) for f in log.not_read)


def _located(path: str, project: Path) -> str:
    """The absolute path, without `..`. Links are resolved only when files are read, so that a link
    may be switched to another folder."""
    return path if is_uri(path) else os.path.normpath(project / at_home(path))


def _sequence(offsets: Mapping[str, int]) -> int:
    """The sequence of the last file that bronze has ingested."""
    return offsets.get("sequence", 0)
