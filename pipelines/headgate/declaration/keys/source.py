"""The keys of a source."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.contracts.source import CONNECTORS
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import Duplicates, Record, TimeForm
from headgate.declaration.quantities import format_duration

_TIMES = (
    Key(
        "format",
        "text",
        "`iso` ([ISO 8601](#times)), `epoch_seconds`, `epoch_millis`, `epoch_micros`, "
        "`epoch_nanos`, or a Spark date pattern such as `yyyy-MM-dd HH:mm:ss`.",
        default=TimeForm.format,
    ),
    Key(
        "zone",
        "text",
        "The IANA time zone of times without an offset, such as `Europe/Paris`: of a pattern that "
        "reads none, and of `iso` where it is missing.",
    ),
    Key(
        "ambiguous",
        "choice",
        "What a local time is that the clocks of `zone` show twice: the `earlier` or the `later` "
        "one of the two instants, or none (`quarantine`).",
        default=TimeForm.ambiguous,
        choices=("earlier", "later", "quarantine"),
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
            "paths",
            "The columns that identify an event, or fields inside of structs, such as "
            "`payload.id`. All digits of a value count, also those that its column does not keep. "
            "Without this key, the position in the source identifies an event, and no record is a "
            "duplicate.",
        ),
        Key(
            "event_time",
            "section",
            "Where the event time is read from. If the column is a timestamp, its keys `format`, "
            "`zone` and `ambiguous` can be written here instead.",
            required=True,
            children=(
                Key(
                    "column",
                    "path",
                    "A column of `schema`, or a field inside of structs, such as `payload.at`.",
                    required=True,
                ),
                *_TIMES,
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
            "The columns of a record and their Spark SQL types. A column is read from the field of "
            "its name. Names are case-sensitive, but those of two columns must not differ only in "
            "case.",
            required=True,
            of_columns=True,
            entry=Key(
                "COLUMN",
                "section",
                "string, boolean, tinyint, smallint, int, bigint, float, "
                "double, decimal(p,s), date or timestamp; or, but not in CSV, of these "
                "array<type>, map<string, type> or struct<name: type, ...>, at most 20 in each "
                "other. A map of keys instead reads a field of any name, and times of any form: "
                '`order_id: {field: "order id", type: string}`, '
                "`read_at: {type: timestamp, format: epoch_millis}`. The form applies to all "
                "timestamps in the column.",
                short="type",
                children=(
                    Key("type", "type", "The type of the column.", required=True),
                    Key(
                        "field",
                        "field",
                        "The name of the field in the record, if the column has another one. It "
                        "is compared exactly, and is not a path: `user.id` is one field of this "
                        "name. Two columns cannot read the same field.",
                    ),
                    *_TIMES,
                ),
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
    Key(
        "idle_after",
        "duration",
        "If the source delivers no record for this time, while another one delivers at least once "
        "in every tenth of it, gold tables that read both stop waiting for its watermark. When it "
        "delivers again, its rows are late if they are older than what was final by then. Without "
        "this key, the tables wait for ever, and `status` names the source.",
        low=timedelta(seconds=1),
        high=YEAR,
    ),
)


def source_key() -> Key:
    """The key of a source. It contains a key for each kind of source that is installed."""
    names = CONNECTORS.names()
    return Key(
        "SOURCE",
        "section",
        "One source: a folder of files or Kafka topics.",
        one_of=names,
        children=(*(CONNECTORS[name].key for name in names), RECORD, *_EXPECTATIONS),
    )
