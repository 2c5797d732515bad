"""The keys of silver and gold tables."""

from __future__ import annotations

from datetime import timedelta

from headgate.spec.key import INSTANT, YEAR, Key, comes_next

_EXPRESSIONS = Key("NAME", "expression", "A Spark SQL expression.")

SILVER = Key(
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
            of_columns=True,
        ),
        Key("drop", "names", "Columns that the table leaves out.", default="[]"),
        Key(
            "where",
            "expression",
            "A condition over the results of `columns`. A record for which it is false or null is "
            "filtered: counted, and not kept.",
        ),
        *comes_next(
            "explode", "lookup", "sql", "transform", "expectations", "partition_by", "retain"
        ),
    ),
)

_WINDOW = Key(
    "window",
    "section",
    "Event-time windows `[start, start + size)`, aligned to the Unix epoch in UTC. Exactly one of "
    "its keys.",
    required=True,
    one_of=("tumbling", "hopping"),
    children=(
        Key(
            "tumbling",
            "duration",
            "Windows of this size, one after the other.",
            low=INSTANT,
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
                    low=INSTANT,
                    high=YEAR,
                ),
                Key(
                    "every",
                    "duration",
                    "A new window starts this often.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
            ),
        ),
        *comes_next("session", "calendar"),
    ),
)

GOLD = Key(
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
        Key(
            "salt",
            "integer",
            "The first step of folding spreads each key over this many parts, so that one hot key "
            "does not hold up a batch; the answer is the same. May be changed at any time.",
            low=2,
            high=1024,
        ),
        *comes_next("latest", "join", "process", "publish", "partition_by", "retain"),
    ),
)
