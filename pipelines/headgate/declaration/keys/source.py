"""The keys of a source."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.kafka.keys import KAFKA
from headgate.declaration.keys.key import INSTANT, YEAR, Key

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

FILES = Key(
    "files",
    "section",
    "A landing folder. Files are read in a recorded order, each once. A name that starts with "
    "`.` or `_` is not read: write to such a name, then rename.",
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
            high=1 << 40,
            deployment=True,
        ),
        _CSV,
    ),
)

RECORD = Key(
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
                Key("column", "column", "A column of `schema`.", required=True),
                Key(
                    "format",
                    "text",
                    "`iso` (with an offset such as `+01:00`, `+0100` or `+01`, or `Z`), "
                    "`epoch_seconds`, `epoch_millis`, or a Spark "
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
            "Recognise events that were sent twice. Needs `event_id`. Of Kafka, within a "
            "partition: give an event the same key each time.",
            children=(
                Key(
                    "within",
                    "duration",
                    "An event with the same id and an event time this near to that of an earlier "
                    "record that conforms is a duplicate.",
                    required=True,
                    low=INSTANT,
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
            low=INSTANT,
            high=10 * YEAR,
        ),
        Key(
            "unknown_fields",
            "choice",
            "Fields that `schema` does not declare are left out (`ignore`), kept as JSON text in "
            "`_rescued` (`rescue`), a text that silver may use in `columns` and `where`, or send "
            "the record to quarantine (`quarantine`).",
            default="ignore",
            choices=("ignore", "rescue", "quarantine"),
        ),
        Key(
            "schema",
            "table",
            "The fields of a record and their Spark SQL types. Names are case-sensitive, but no "
            "two may differ only in case.",
            required=True,
            of_columns=True,
            entry=Key(
                "COLUMN",
                "type",
                "string, boolean, tinyint, smallint, int, bigint, float, "
                "double, decimal(p,s), date or timestamp.",
            ),
        ),
    ),
)

_EXPECTATIONS = (
    Key(
        "expect_input_every",
        "duration",
        "A running pipeline that has read no record for longer than this, and has nothing left to "
        "read, fails the health check `input`. Without this key there is no such check.",
        low=timedelta(seconds=1),
        high=YEAR,
    ),
    Key(
        "expect_event_time_within",
        "duration",
        "A running pipeline whose event clock is further behind the present than this fails the "
        "health check `event_time`. Without this key, as for a backfill of old events, there is no "
        "such check.",
        low=timedelta(seconds=1),
        high=10 * YEAR,
    ),
)

SOURCE = Key(
    "SOURCE",
    "section",
    "One source: files or Kafka.",
    one_of=("files", "kafka"),
    children=(FILES, KAFKA, RECORD, *_EXPECTATIONS),
)
