"""Every key of a declaration, once: its shape, whether it must be there, default and meaning.

The loader checks files against this table; the JSON Schema for editors and
``docs/declaration.md`` are generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

Kind = Literal[
    "section",  # a map with the keys of `children`
    "table",  # a map from names the author chooses to `entry`
    "names",  # a list of names
    "groups",  # a list of column names, or a map from names to expressions
    "text",
    "name",
    "choice",
    "boolean",
    "integer",
    "size",
    "duration",
    "type",
    "expression",
]

SECOND = timedelta(seconds=1)
YEAR = timedelta(days=366)
GB = 1 << 30


@dataclass(frozen=True)
class Key:
    """``low`` and ``high`` bound a quantity, both inclusive (an int or a timedelta). ``default``
    is as one would write it. A key of the ``deployment`` may hold ``${env:NAME}`` and
    ``${file:PATH}``, and is no part of a pipeline's digest. A key that ``comes_next`` is known,
    and refused."""

    name: str
    kind: Kind = "text"
    doc: str = ""
    required: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    low: Any = None
    high: Any = None
    children: tuple[Key, ...] = ()
    entry: Key | None = None
    deployment: bool = False
    comes_next: bool = False

    def child(self, name: str) -> Key | None:
        return next((key for key in self.children if key.name == name), None)


def _next(*names: str) -> tuple[Key, ...]:
    return tuple(Key(name, doc="Comes next; refused today.", comes_next=True) for name in names)


_CSV = Key(
    "csv",
    "section",
    "How CSV files are written. Only with `format: csv`.",
    children=(
        Key("header", "boolean", "The first line of each file names the fields.", default="true"),
        Key("delimiter", "text", "The one character between fields.", default='","'),
        Key("multiline", "boolean", "Quoted fields may hold line breaks.", default="false"),
    ),
)

_FILES = Key(
    "files",
    "section",
    "A landing folder. Files are read in a recorded order, each once. A name that starts with "
    "`.` or `_` is not read: write to such a name, then rename.",
    required=True,
    children=(
        Key(
            "path",
            "text",
            "The folder. A relative path starts at the project, the nearest folder above the "
            "declaration that holds a `pipelines` folder, or at the declaration's own folder.",
            required=True,
            deployment=True,
        ),
        Key(
            "format",
            "choice",
            "`json` is one document a line. A `.gz` name is read as gzip.",
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
            "How long a file's size and time must hold still before it is read; `0 s` where "
            "files appear whole, as on object stores.",
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
            high=1024 * GB,
            deployment=True,
        ),
        _CSV,
    ),
)

_RECORD = Key(
    "record",
    "section",
    "How one record is identified, placed in time and typed.",
    required=True,
    children=(
        Key(
            "event_id",
            "names",
            "The columns that identify an event. Left out, an event is identified by its position "
            "in the source, and nothing is ever a duplicate.",
        ),
        Key(
            "event_time",
            "section",
            "Where the event's own time is read.",
            required=True,
            children=(
                Key("column", "name", "A column of `schema`.", required=True),
                Key(
                    "format",
                    "text",
                    "`iso` (with an offset or `Z`), `epoch_seconds`, `epoch_millis`, or a Spark "
                    "date pattern such as `yyyy-MM-dd HH:mm:ss`.",
                    default="iso",
                ),
                Key(
                    "zone",
                    "text",
                    "The IANA time zone of a pattern without an offset, such as `Europe/Paris`.",
                ),
            ),
        ),
        Key(
            "duplicates",
            "section",
            "Recognise events that were sent twice. Needs `event_id`.",
            children=(
                Key(
                    "within",
                    "duration",
                    "An event with the same id and an event time this near to an earlier one's is "
                    "a duplicate.",
                    required=True,
                    low=timedelta(milliseconds=1),
                    high=YEAR,
                ),
                Key(
                    "differing",
                    "choice",
                    "Same id, other content: still a duplicate, and counted (`warn`); an event of "
                    "its own (`keep`); or put into quarantine (`quarantine`).",
                    default="warn",
                    choices=("warn", "keep", "quarantine"),
                ),
            ),
        ),
        Key(
            "future_after",
            "duration",
            "An event time this far past the moment the record was seen is taken for a broken "
            "clock: the record goes to quarantine and moves no window.",
            default="1 hour",
            low=timedelta(milliseconds=1),
            high=10 * YEAR,
        ),
        Key(
            "unknown_fields",
            "choice",
            "Fields that `schema` does not declare are left out (`ignore`), kept as JSON text in "
            "`_rescued` (`rescue`), or send the record to quarantine (`quarantine`).",
            default="ignore",
            choices=("ignore", "rescue", "quarantine"),
        ),
        Key(
            "schema",
            "table",
            "The fields of a record and their Spark SQL types. Names are case-sensitive.",
            required=True,
            entry=Key(
                "COLUMN",
                "type",
                "string, boolean, tinyint, smallint, int, bigint, float, "
                "double, decimal(p,s), date or timestamp.",
            ),
        ),
    ),
)

_EXPRESSIONS = Key("NAME", "expression", "A Spark SQL expression.")

_SILVER = Key(
    "TABLE",
    "section",
    "One silver table: the records that conform, with columns of the author's making.",
    children=(
        Key("from", "name", "The source it conforms.", required=True),
        Key(
            "columns",
            "table",
            "Expressions over the record's fields. A new name adds a column, a field's name "
            "replaces it. They do not see each other, and cannot change the event time.",
            entry=_EXPRESSIONS,
        ),
        Key("drop", "names", "Columns that the table leaves out.", default="[]"),
        Key(
            "where",
            "expression",
            "A condition over the results of `columns`. A record for which it is false or null is "
            "filtered: counted, and not kept.",
        ),
        *_next("explode", "lookup", "sql", "transform", "expectations", "partition_by", "retain"),
    ),
)

_WINDOW = Key(
    "window",
    "section",
    "Event-time windows `[start, start + size)`, aligned to the Unix epoch in UTC. Exactly one of "
    "its keys.",
    required=True,
    children=(
        Key(
            "tumbling",
            "duration",
            "Windows of this size, one after the other.",
            low=timedelta(milliseconds=1),
            high=YEAR,
        ),
        Key(
            "hopping",
            "section",
            "Windows that overlap.",
            children=(
                Key(
                    "size",
                    "duration",
                    "How long a window is: a multiple of `every`.",
                    required=True,
                    low=timedelta(milliseconds=1),
                    high=YEAR,
                ),
                Key(
                    "every",
                    "duration",
                    "A new window starts this often.",
                    required=True,
                    low=timedelta(milliseconds=1),
                    high=YEAR,
                ),
            ),
        ),
        *_next("session", "calendar"),
    ),
)

_GOLD = Key(
    "TABLE",
    "section",
    "One gold table: measures per window and group.",
    children=(
        Key("from", "name", "The silver table it folds.", required=True),
        _WINDOW,
        Key("where", "expression", "A condition over silver columns; other rows are not folded."),
        Key(
            "by",
            "groups",
            "What rows are grouped by: silver columns, or a map from names to expressions over "
            "silver columns. Left out, there is one row per window.",
            default="[]",
        ),
        Key(
            "measures",
            "table",
            "`count(*)`, or one of count, sum, min, max, avg, stddev, count_distinct, "
            "approx_count_distinct, first, last over one expression of silver columns.",
            required=True,
            entry=Key("NAME", "expression", "A measure, such as `sum(price)`."),
        ),
        Key(
            "columns",
            "table",
            "Expressions over `by` and `measures`, computed when the table is written.",
            entry=_EXPRESSIONS,
        ),
        Key(
            "allowed_lateness",
            "duration",
            "How long after a window's end its rows are still taken. Later rows go to the table's "
            "late side table. (Spark: the delay of withWatermark; Flink: allowedLateness; Kafka "
            "Streams: grace.)",
            required=True,
            low=timedelta(0),
            high=YEAR,
        ),
        *_next("latest", "join", "process", "publish", "partition_by", "retain"),
    ),
)

PIPELINE = Key(
    "",
    "section",
    "A pipeline: one file.",
    children=(
        Key("pipeline", "name", "The pipeline's name; its tables live under it.", required=True),
        Key(
            "sources",
            "table",
            "Where records come from. One source today.",
            required=True,
            entry=Key(
                "SOURCE",
                "section",
                "One source.",
                children=(_FILES, *_next("kafka"), _RECORD),
            ),
        ),
        Key("silver", "table", "Silver tables.", required=True, entry=_SILVER),
        Key("gold", "table", "Gold tables.", entry=_GOLD),
        Key(
            "jobs",
            "choice",
            "`fused`: one process runs all layers; `per_layer`: one process each. May be changed "
            "at any time.",
            default="fused",
            choices=("fused", "per_layer"),
        ),
        *_next("functions", "publish", "partition_by", "retain", "airflow"),
    ),
)
