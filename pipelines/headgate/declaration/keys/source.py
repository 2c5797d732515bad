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
        Key("delimiter", "text", "The character between fields.", default='","'),
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
            "`json` is one document per line. A name that ends in `.gz` is read as gzip.",
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
            "How long a file's size and modification time must stay the same before it is read. "
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

RECORD = Key(
    "record",
    "section",
    "The id, the event time and the types of a record.",
    required=True,
    children=(
        Key(
            "event_id",
            "names",
            "The columns that identify an event. Without this key, the position in the source "
            "identifies an event, and no record is a duplicate.",
        ),
        Key(
            "event_time",
            "section",
            "Where the event time is read from.",
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
                    "The IANA time zone for a pattern without an offset, such as `Europe/Paris`.",
                ),
            ),
        ),
        Key(
            "duplicates",
            "section",
            "Recognise events that were sent twice. Needs `event_id`. For Kafka, duplicates are "
            "recognised within a partition: give an event the same key each time.",
            children=(
                Key(
                    "within",
                    "duration",
                    "A record is a duplicate if an earlier valid record has the same id and an "
                    "event time within this distance.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
                Key(
                    "differing",
                    "choice",
                    "What a record with the same id and other content is: a duplicate that is "
                    "counted (`warn`), a separate event (`keep`), or a record for quarantine "
                    "(`quarantine`).",
                    default="warn",
                    choices=("warn", "keep", "quarantine"),
                ),
            ),
        ),
        Key(
            "future_after",
            "duration",
            "A record whose event time is further than this past the moment it was seen goes to "
            "quarantine and does not advance the watermark: its clock is probably wrong.",
            default="1 hour",
            low=INSTANT,
            high=10 * YEAR,
        ),
        Key(
            "unknown_fields",
            "choice",
            "What happens to fields that `schema` does not declare: they are left out (`ignore`), "
            "they are kept as JSON text in `_rescued`, which silver may use in `columns` and "
            "`where` (`rescue`), or the record goes to quarantine (`quarantine`).",
            default="ignore",
            choices=("ignore", "rescue", "quarantine"),
        ),
        Key(
            "schema",
            "table",
            "The fields of a record and their Spark SQL types. Names are case-sensitive, but two "
            "names must not differ only in case.",
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
        "A running pipeline that has read no record for longer than this, and has no unread input, "
        "fails the health check `input`. Without this key, the check never fails.",
        low=timedelta(seconds=1),
        high=YEAR,
    ),
    Key(
        "expect_event_time_within",
        "duration",
        "A running pipeline whose watermark is further behind the present than this fails the "
        "health check `event_time`. Without this key, the check never fails; leave the key out for "
        "a backfill of old events.",
        low=timedelta(seconds=1),
        high=10 * YEAR,
    ),
)

SOURCE = Key(
    "SOURCE",
    "section",
    "One source: a folder of files or Kafka topics.",
    one_of=("files", "kafka"),
    children=(FILES, KAFKA, RECORD, *_EXPECTATIONS),
)
