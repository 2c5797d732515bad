"""The section ``files`` of a source: its keys, and the settings that they declare."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from headgate.declaration.keys.key import Key
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


_CSV = Key(
    "csv",
    "section",
    "How CSV files are written. Only with `format: csv`.",
    children=(
        Key(
            "header",
            "boolean",
            "The first line of each file names the fields. With `false`, files have no such line: "
            "the cells of each row are all columns of `schema`, in its order.",
            default="true",
        ),
        Key("delimiter", "delimiter", "The character between fields.", default='","'),
        Key(
            "escape",
            "delimiter",
            'The character before a quote within a quoted field, such as `"\\\\"` for dumps of '
            "Spark, MySQL and PostgreSQL. Without this key, such a quote is doubled.",
        ),
        Key("multiline", "boolean", "Quoted fields may contain line breaks.", default="false"),
    ),
)

FILES = Key(
    "files",
    "section",
    "A landing folder. Each file is read once, in a recorded order. A name that starts with `.` or "
    "`_` is not read: write a file under such a name, then rename it.",
    children=(
        Key(
            "path",
            "text",
            "The folder. A relative path starts at the project folder: the nearest folder above "
            "the declaration that contains a `pipelines` folder, otherwise the declaration's own "
            "folder.",
            required=True,
            deployment=True,
        ),
        Key(
            "format",
            "choice",
            "`json` is one document per line. Files of lines may be compressed with gzip, bzip2 or "
            "zstd, whatever their names are.",
            required=True,
            choices=("json", "csv", "parquet"),
        ),
        Key(
            "order",
            "choice",
            "The order among files that are found together.",
            default="name",
            choices=("name", "modified"),
        ),
        Key(
            "settle",
            "duration",
            "A file is read once its modification time is at least this long ago. A file with a "
            "time in the future is read once two listings in a row show the same size and time. "
            "Use `0 s` if files appear complete, as on object stores.",
            default="2 s",
            low=timedelta(0),
            high=timedelta(hours=1),
            deployment=True,
        ),
        Key(
            "max_files_per_batch",
            "integer",
            "A micro-batch takes no more files than this.",
            default="1000",
            low=1,
            high=1_000_000,
            deployment=True,
        ),
        Key(
            "max_bytes_per_batch",
            "size",
            "A micro-batch takes no more bytes than this, but at least one file.",
            default='"64 MB"',
            low=1,
            high=1 << 40,
            deployment=True,
        ),
        _CSV,
    ),
)
