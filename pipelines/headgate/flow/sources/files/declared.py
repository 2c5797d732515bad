"""The declared settings of a landing folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from headgate.declaration.model import RecordFormat

FileOrder = Literal["name", "modified"]


@dataclass(frozen=True)
class FilesSource:
    """A landing folder. ``path`` is a URI as written, or an absolute path. A relative path begins
    at the project folder. ``csv_fields`` has the declared fields, in order: the cells of CSV files
    without a header. ``csv_escape`` is a character, or empty."""

    path: str
    format: RecordFormat
    order: FileOrder = "name"
    settle: timedelta = timedelta(seconds=2)
    max_files_per_batch: int = 1000
    max_bytes_per_batch: int = 64 * 1024 * 1024
    csv_header: bool = True
    csv_delimiter: str = ","
    csv_escape: str = ""
    csv_multiline: bool = False
    csv_fields: tuple[str, ...] = ()
