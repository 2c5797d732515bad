"""The keys of silver and gold tables."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import OPERATORS
from headgate.declaration.keys.key import INSTANT, YEAR, Key, comes_next
from headgate.declaration.model import AUTO

_EXPRESSIONS = Key("NAME", "expression", "A Spark SQL expression.")
_COMPUTED = "write expressions in `columns`, and a condition in `where`"

_EXPLODED = Key(
    "NAME",
    "section",
    "The array, or its column and what becomes of records without items.",
    short="array",
    children=(
        Key(
            "array",
            "path",
            "The array: a column of the record, or a path into structs such as `payload.items`.",
            required=True,
        ),
        Key(
            "empty",
            "choice",
            "What becomes of a record whose array is null or has no item. `drop`: it has no row, "
            "so that rows are items and nothing else; the ledger counts it as `empty`. `keep`: it "
            "has one row, whose item is null.",
            default="drop",
            choices=("drop", "keep"),
        ),
    ),
)

SILVER = Key(
    "TABLE",
    "section",
    "One silver table: the valid records, with computed columns.",
    children=(
        Key("from", "name", "The source that the table reads.", required=True),
        Key(
            "columns",
            "table",
            "Expressions over the record's fields. A new name adds a column; the name of a field "
            "replaces the field. An expression cannot use another one of this map, and cannot "
            "change the event time.",
            entry=_EXPRESSIONS,
            of_columns=True,
        ),
        Key("drop", "names", "Columns that the table leaves out.", default="[]"),
        Key(
            "where",
            "expression",
            "A condition over the results of `columns`. A record for which it is false or null is "
            "filtered: it is counted and not kept.",
        ),
        Key(
            "explode",
            "table",
            "A record becomes a row for each item of an array: `{line: items}` makes the items of "
            "the column `items` rows with the column `line`, beside the record's other columns. "
            "`columns`, `where` and rules can use `line`, or `line.price` if items are structs. "
            "The table does not have the column `items`, unless `columns` has its name, but "
            "`columns` can use it. Id, event time and duplicates are those of the record. The "
            "column `_item` is the place of an item in its array, from 0. An item may be null.",
            entry=_EXPLODED,
            of_columns=True,
        ),
        comes_next("lookup", "write `case ... end` in `columns`, or join in headgate query"),
        comes_next("sql", _COMPUTED, replaces=("from",)),
        comes_next("transform", _COMPUTED, replaces=("from",)),
        Key(
            "expectations",
            "name",
            "The suite of rules that each row has to meet, if it meets `where`: the file "
            "`expectations/NAME.yml` of the project.",
        ),
        comes_next("partition_by"),
        comes_next("retain"),
    ),
)

_FROM = Key(
    "from",
    "name",
    "The table that it aggregates: a silver or a gold table. Of a gold table, such as `hours`, it "
    "reads the final rows. A row belongs to the window that contains the last moment of the row's "
    "own window: the hour that ends at midnight belongs to the day that ends then. A late replay "
    "or a backfill that corrects rows of `hours` corrects this table, too. Expressions can use the "
    "keys, measures and columns of `hours`, and the struct `hours`, which has the window of a row, "
    "unless one of these columns is called `hours`.",
    required=True,
)
_COMMON = (
    Key("where", "expression", "A condition over silver columns. Other rows are left out."),
    Key(
        "by",
        "groups",
        "The key that rows are grouped by: silver columns, or a map from names to expressions "
        "over silver columns. Without it, there is one row for each result.",
        default="[]",
    ),
    Key(
        "measures",
        "table",
        f"`count(*)`, or one of {', '.join(MEASURES.names())} over expressions of silver columns. "
        "`filter (where condition)` may follow.",
        required=True,
        entry=Key("NAME", "expression", "A measure, such as `sum(price)`."),
    ),
    Key(
        "columns",
        "table",
        "Expressions over `by` and `measures`, computed when the table is written. With `join`, a "
        "row has no other columns of yours: they are required, and are expressions over the "
        "columns of both tables, such as `clicks.user`.",
        entry=_EXPRESSIONS,
    ),
    Key(
        "allowed_lateness",
        "duration",
        "How far the watermark may pass the end of a window, or the time of a pair, before it is "
        "final. Later "
        "rows go to the table's late table. (Spark: the delay of withWatermark; Flink: "
        "allowedLateness; Kafka Streams: grace; Beam: withAllowedLateness.)",
        required=True,
        low=timedelta(0),
        high=YEAR,
    ),
    Key(
        "late",
        "section",
        "Late rows are replayed on a schedule: folded into the final rows of their windows, whose "
        "`revision` grows, or included in the results of a join. Without it, they wait until "
        "somebody replays them. You can change it at any time.",
        children=(
            Key(
                "replay_every",
                "duration",
                "The time between two replays. A replay without a row to fold does not take place.",
                required=True,
                low=timedelta(hours=1),
                high=YEAR,
            ),
            Key(
                "within",
                "duration",
                "Rows whose event time is further behind the watermark than this keep waiting.",
                required=True,
                low=INSTANT,
                high=10 * YEAR,
            ),
        ),
    ),
    Key(
        "salt",
        "integer",
        "The first step of an aggregation divides each key into this many parts, so that one "
        "hot key does not slow down a batch. The result is the same. You can change it at any "
        "time.",
        low=2,
        high=1024,
    ),
    Key(
        "step",
        "duration",
        "How often the table takes a step, which folds all batches since the last one. For a table "
        "whose work for each step is large. With a duration, steps begin at least so far apart. "
        "With `auto`, they take about a fourth of the time, and the pause after one is at most "
        "10 minutes. Without it, the table takes a step with every batch; one that joins rows or "
        "has measures `over` rows takes steps as with `auto`. The rows are the same. "
        "You can change it at any time.",
        low=timedelta(seconds=1),
        high=timedelta(days=1),
        choices=(AUTO,),
    ),
    Key(
        "live",
        "boolean",
        "`true`: a table that joins rows, or has measures `over` rows, also shows the results that "
        "are not final yet, with `final` false. Each step replaces them. Without it, a result "
        "is in the table only when it is final. You can change it at any time.",
        default="false",
    ),
    Key(
        "expectations",
        "name",
        "The suite of rules that each version of the table has to meet before it becomes visible: "
        "the file `expectations/NAME.yml` of the project.",
    ),
    comes_next(
        "latest",
        "select the newest row of each key from silver in headgate query: "
        "QUALIFY row_number() OVER (PARTITION BY key ORDER BY _event_time DESC) = 1",
        replaces=("window", "measures", "allowed_lateness"),
    ),
    comes_next("process", "write `measures` and `columns`", replaces=("window", "measures")),
    comes_next("publish", "write the section `publish`, beside `gold`"),
    comes_next("partition_by"),
    comes_next("retain"),
)


_TIME = Key(
    "time",
    "choice",
    "`arrival`: windows by the stored time at which records arrived, in place of their event time. "
    "No row of the stream is late for them.",
    choices=("arrival",),
    replaces_above=("allowed_lateness", "late"),
)


def gold_key() -> Key:
    """The keys of a gold table. One key of one operator is given."""
    kinds = [OPERATORS[name] for name in OPERATORS.names()]
    windows = [key for kind in kinds if kind.is_window for key in kind.keys]
    others = [key for kind in kinds if not kind.is_window for key in kind.keys]
    window = Key(
        "window",
        "section",
        "Event-time windows, or windows of another `time`: the start is inclusive, the end is "
        "exclusive. Give exactly one of the keys "
        + f"{', '.join(f'`{key.name}`' for key in windows)}.",
        required=not others,
        one_of=tuple(key.name for key in windows),
        children=(*windows, _TIME),
    )
    return Key(
        "TABLE",
        "section",
        "One gold table: measures per window and key, or a join of two silver tables.",
        one_of=("window", *(key.name for key in others)) if others else (),
        children=(_FROM, window, *others, *_COMMON),
    )
