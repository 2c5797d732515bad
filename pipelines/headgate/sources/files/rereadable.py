"""Whether a landing folder still holds everything behind a position, to be read again."""

from __future__ import annotations

from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.sources.files.intake import FilesIntake
from headgate.sources.files.log import FilesLog
from headgate.storage.layout import Layout


def gone_files(layout: Layout, pipeline: Pipeline, after: int) -> str | None:
    """Which of the files behind sequence ``after`` cannot be read a second time, in words; None if
    all can."""
    log = FilesLog(layout.storage, pipeline.name, pipeline.source.name)
    if not log.table.exists:
        return "there is no log of the files that were read"
    try:
        log.load()
        FilesIntake(pipeline.source, log).require_all_again(after)
    except HeadgateError as error:
        return error.message
    return None
