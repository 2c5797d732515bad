"""The keys of a source."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import Duplicates, EventTime, Record
from headgate.declaration.quantities import format_duration
from headgate.declaration.sources import SOURCES

RECORD = Key(
    "record",
    "section",
    "The id, the event time and the types of a record.",
    required=True,
    children=(
        Key(
            "event_id",
            "names",
            "The columns that identify an event, by their values as the schema types them: declare "
            "a column as string if a decimal has more digits than its scale, or a time more than "
            "six. Without this key, the position in the source identifies an event, and no record "
            "is a duplicate.",
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
                    default=EventTime.format,
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
                    default=Duplicates.differing,
                    choices=("warn", "keep", "quarantine"),
                ),
            ),
        ),
        Key(
            "future_after",
            "duration",
            "A record whose event time is further than this past the moment it was seen goes to "
            "quarantine and does not advance the watermark: its clock is probably wrong.",
            default=format_duration(Record.future_after),
            low=INSTANT,
            high=10 * YEAR,
        ),
        Key(
            "unknown_fields",
            "choice",
            "What happens to fields of a record that `schema` does not declare (fields inside of a "
            "declared one are left out if its type does not name them). `ignore`: they are left "
            "out. `rescue`: they are kept as JSON text in `_rescued`, which silver may use in "
            "`columns` and `where`. `quarantine`: the record goes to quarantine.",
            default=Record.unknown_fields,
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
                "double, decimal(p,s), date or timestamp; or, but not in CSV, of these "
                "array<type>, map<string, type> or struct<name: type, ...>, at most 20 in each "
                "other.",
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
        "old events that are read on purpose.",
        low=timedelta(seconds=1),
        high=10 * YEAR,
    ),
)


def source_key() -> Key:
    """The key of a source. It contains a key for each kind of source that is installed."""
    names = SOURCES.names()
    return Key(
        "SOURCE",
        "section",
        "One source: a folder of files or Kafka topics.",
        one_of=names,
        children=(*(SOURCES[name].key for name in names), RECORD, *_EXPECTATIONS),
    )
