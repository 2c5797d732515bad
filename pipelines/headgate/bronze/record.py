"""From a source's bytes to a record: fields, id, event time, and what is wrong with it.

Everything is a column expression that cannot fail: a record that does not fit gets a reason.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.bronze.document import STRICT, is_document, is_object, is_suspect
from headgate.bronze.reasons import Reason
from headgate.bronze.times import event_time, iso_time
from headgate.spec.model import Column as Declared
from headgate.spec.model import FileFormat, Record

PARSED_COLUMNS = (
    "partition",
    "offset",
    "key",
    "headers",
    "value",
    "file",
    "ingested_at",
    "seen_at",
    "event_id",
    "event_time",
    "record",
    "reason",
    "reason_column",
)


def parse(records: DataFrame, record: Record, format: FileFormat) -> DataFrame:
    """``PARSED_COLUMNS`` of every record in ``records`` (shape: ``tables.record_shape``).

    ``record`` is a struct of the declared columns, plus ``_rescued`` where asked. ``reason`` is
    null or a :class:`Reason` and ``reason_column`` the first column of the wrong type.
    """
    rows = records.withColumn("_raw", F.from_json("parse", _raw_type(record, format), STRICT))
    rows = rows.withColumn("_time", event_time(_raw(record.event_time.column), record.event_time))
    rows = rows.withColumn("_suspect", is_suspect(F.col("parse"), F.col("_raw._corrupt")))
    rows = rows.withColumn("event_id", _event_id(record, format))
    rows = rows.withColumn("_fields", F.struct(*(_field(c, record, format) for c in record.schema)))
    rows = rows.withColumn("_wrong", _wrong_column(record, format))
    rows = rows.withColumn("reason", _reason(record, format))
    return rows.select(
        *(c for c in PARSED_COLUMNS if c in records.columns),
        F.when(_is_readable() | F.lit(not record.event_id), F.col("event_id")).alias("event_id"),
        F.when(_is_readable(), F.col("_time")).alias("event_time"),
        _record(record).alias("record"),
        "reason",
        F.when(F.col("reason") == Reason.WRONG_TYPE, F.col("_wrong")).alias("reason_column"),
    ).select(*PARSED_COLUMNS)


def record_type(record: Record) -> str:
    """The Spark type of bronze's ``record`` column."""
    fields = [f"`{c.name}`: {c.type}" for c in record.schema]
    if record.unknown_fields == "rescue":
        fields.append("`_rescued`: string")
    return f"struct<{', '.join(fields)}>"


def _raw(name: str) -> Column:
    return F.col(f"_raw.`{name}`")


def _raw_type(record: Record, format: FileFormat) -> str:
    """What the parser is asked for: times as text (their rules are ours), CSV cells as text."""
    fields = [f"`{c.name}` {_parsed_as(c, record, format)}" for c in record.schema]
    return ", ".join([*fields, "_corrupt string"])


def _parsed_as(column: Declared, record: Record, format: FileFormat) -> str:
    if format == "csv":
        return "string"
    is_epoch = record.event_time.format.startswith("epoch")
    if column.name == record.event_time.column and is_epoch and column.type == "timestamp":
        return "bigint"
    return "string" if column.type in ("timestamp", "binary") else column.type


def _field(column: Declared, record: Record, format: FileFormat) -> Column:
    raw = _raw(column.name)
    if column.type == "timestamp":
        is_event_time = column.name == record.event_time.column
        value = F.col("_time") if is_event_time else iso_time(raw)
    elif column.type in ("double", "float"):
        number = raw.cast(column.type)
        value = F.when(F.abs(number) != float("inf"), number)
    else:
        value = raw.cast(column.type) if format == "csv" else raw
    return value.alias(column.name)


def _text(name: str) -> Column:
    """A field as text whatever its type: only for lines that are suspect already."""
    return F.from_json("parse", "map<string,string>", STRICT)[name]


def _event_id(record: Record, format: FileFormat) -> Column:
    if not record.event_id:
        return F.concat_ws(":", F.col("partition").cast("string"), F.col("offset").cast("string"))
    texts = [_raw(name).cast("string") for name in record.event_id]
    if len(texts) == 1:
        return texts[0]
    complete = reduce(Column.__and__, (t.isNotNull() for t in texts))
    return F.when(complete, F.to_json(F.array(*texts)))


def _wrong_column(record: Record, format: FileFormat) -> Column:
    """The first declared column whose value has another type, or null."""
    wrong = [
        F.when(_is_wrong(c, record, format), F.lit(c.name))
        for c in record.schema
        if not (c.name == record.event_time.column and c.type == "timestamp")
    ]
    return F.coalesce(*wrong, F.lit(None).cast("string"))


def _is_wrong(column: Declared, record: Record, format: FileFormat) -> Column:
    raw, value = _raw(column.name), F.col(f"_fields.`{column.name}`")
    if column.type == "string" and format != "csv":
        # The parser takes an object for a string and hands its text on.
        nested = F.substring(raw, 1, 1).isin("{", "[")
        found = F.try_variant_get(F.try_parse_json("parse"), f"$['{column.name}']", "variant")
        kind = F.when(nested, F.schema_of_variant(F.when(nested, found)))
        return F.coalesce(kind.rlike("^(OBJECT|ARRAY)"), F.lit(False))
    parsed_here = column.type in ("timestamp", "double", "float") or format == "csv"
    unconverted = raw.isNotNull() & value.isNull() if parsed_here else F.lit(False)
    if format == "csv" or column.type == "timestamp":
        return unconverted
    refused = F.when(F.col("_raw._corrupt").isNotNull() & raw.isNull(), _text(column.name).isNotNull())
    return unconverted | F.coalesce(refused, F.lit(False))


def _reason(record: Record, format: FileFormat) -> Column:
    suspect, corrupt = F.col("_suspect"), F.col("_raw._corrupt").isNotNull()
    time_given = _raw(record.event_time.column).isNotNull() | F.coalesce(
        F.when(corrupt, _text(record.event_time.column).isNotNull()), F.lit(False)
    )
    future = F.col("_time") > F.col("seen_at") + F.expr(
        f"interval {int(record.future_after.total_seconds() * 1_000_000)} microseconds"
    )
    reason = (
        F.when(F.col("parse").isNull(), Reason.UNPARSABLE.value)
        .when(suspect & ~is_document(F.col("parse")), Reason.UNPARSABLE.value)
        .when(suspect & ~is_object(F.col("parse")), Reason.NOT_AN_OBJECT.value)
        .when(F.col("event_id").isNull(), Reason.MISSING_ID.value)
        .when(F.col("_time").isNull() & ~time_given, Reason.MISSING_TIME.value)
        .when(F.col("_time").isNull(), Reason.UNPARSABLE_TIME.value)
        .when(future, Reason.FUTURE.value)
        .when(F.col("_wrong").isNotNull() | corrupt, Reason.WRONG_TYPE.value)
    )
    if record.unknown_fields == "quarantine":
        reason = reason.when(F.size(_unknown(record)) > 0, Reason.UNKNOWN_FIELD.value)
    return reason


def _unknown(record: Record) -> Column:
    declared = F.array(*(F.lit(c.name) for c in record.schema))
    return F.array_except(F.json_object_keys("parse"), declared)


def _record(record: Record) -> Column:
    fields = [F.col(f"_fields.`{c.name}`").alias(c.name) for c in record.schema]
    if record.unknown_fields == "rescue":
        every = F.from_json("parse", "map<string,string>", STRICT)
        unknown = F.map_filter(every, lambda k, _: ~k.isin(*(c.name for c in record.schema)))
        fields.append(F.when(F.size(unknown) > 0, F.to_json(unknown)).alias("_rescued"))
    return F.when(_is_readable(), F.struct(*fields))


def _is_readable() -> Column:
    """Half a document may have given fields before it broke off: they do not count."""
    reasons = (Reason.UNPARSABLE.value, Reason.NOT_AN_OBJECT.value)
    return F.coalesce(~F.col("reason").isin(*reasons), F.lit(True))
