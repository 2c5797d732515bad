"""The files that the ledger lists as not read (again)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from headgate.sources.contract import DeployedSource, UnreadInput
from headgate.sources.files.log import FilesLog, file_statuses
from headgate.tables.live_files import live_files


def unread_files(place: DeployedSource) -> Iterator[UnreadInput]:
    """The unread files, ordered by sequence."""
    table = FilesLog.of(place.storage, place.pipeline, place.source.name).table
    table.refresh()
    events: list[dict[str, Any]] = []
    for file in live_files(table.handle):
        with table.storage.open(file.path) as source:
            events += pq.read_table(source).to_pylist()
    for sequence, logged in sorted(file_statuses(events)[0].items()):
        if logged.status != "recorded":
            yield UnreadInput(sequence, logged.path, logged.status, str(logged.reason))
