"""From a source's bytes to a record: fields, id and event time, and whether to look twice.

Everything is a column expression that cannot fail. Whether a record is fit is not decided here:
a record that is not plainly so is *suspect*, and ``judging`` says what is wrong with it, if
anything. So the many take the cheap way and the few a careful one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.bronze.hashes import hashes
from headgate.bronze.limits import PARSER_LIMITS
from headgate.bronze.numbers import is_odd, tamed
from headgate.bronze.times import event_time, in_range, iso_date, iso_time
from headgate.declaration.model import Column as Declared
from headgate.declaration.model import Record, Source
from headgate.declaration.sources import kind_of_source
from headgate.declaration.types import (
    BIGINT,
    DATE,
    STRING,
    TIMESTAMP,
    DataType,
    Struct,
    is_decimal,
    is_floating,
    is_text,
    is_time,
)
from headgate.tables.projection import Projection

STRICT = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "columnNameOfCorruptRecord": "_corrupt",
    **PARSER_LIMITS,
}


class RecordParser:
    """Parses records of one declaration; a suspect is judged by its ``text``.
    The expressions are made once: building them anew for every batch costs more than a small
    batch's data."""

    def __init__(self, source: Source) -> None:
        kind = kind_of_source(source)
        record, format = source.record, kind.format(source.reads)
        self._record = record
        self._format = format
        self.text = F.col("parse" if format == "csv" else "value")
        decimals = self._json_columns(is_decimal)
        odd = (is_odd(self.text, decimals) if decimals else F.lit(False)).alias("_odd")
        parsable = (
            F.when(F.col("_odd"), tamed(self.text, decimals)).otherwise(self.text)
            if decimals
            else self.text
        )
        parsed = F.from_json(parsable, self._raw_type(), STRICT).alias("_raw")
        time = event_time(_raw(record.event_time.column), record.event_time)
        times = [iso_time(_raw(c.name)).alias(c.name) for c in self._other_times()]
        position = ("partition", "offset", kind.place, "ingested_at", "seen_at")
        kept = [*position, "key", "headers", "value", *(["parse"] if format == "csv" else [])]
        # One step cannot use what it makes itself, and nothing shall be computed twice.
        self._steps = (
            Projection(*kept, odd),
            Projection(*kept, "_odd", parsed),
            Projection(
                *kept,
                "_raw",
                "_odd",
                time.alias("_time"),
                F.struct(*times).alias("_times") if times else F.lit(None).alias("_times"),
                self._event_id().alias("event_id"),
            ),
            Projection(
                *kept,
                "event_id",
                in_range(F.col("_time")).alias("event_time"),
                F.struct(*(self._field(c) for c in record.schema)).alias("record"),
                "_raw",
                "_odd",
            ),
            # Hashed here, while the bytes are near: held in memory, each costs a wait.
            Projection(
                *kept,
                "event_id",
                "event_time",
                "record",
                self._suspect().alias("suspect"),
                *hashes(F.col("event_id") if record.event_id else F.lit(None).cast("string")),
            ),
        )
        self._unclear_steps = (
            Projection("*", odd),
            Projection("*", parsed),
            Projection(
                "partition",
                "offset",
                self.text.cast("binary").alias("text"),
                F.col("event_id").isNull().alias("no_id"),
                F.col("event_time").isNull().alias("no_time"),
                F.col("_raw._corrupt").isNotNull().alias("corrupt"),
                self._all_unconverted().alias("unconverted"),
            ),
        )

    def parse(self, records: DataFrame) -> DataFrame:
        """The columns of ``records`` (shape: ``tables.record_shape``), then event_id, event_time,
        record (a struct of the declared columns), suspect and ``HASHES``."""
        return reduce(lambda rows, step: step.of(rows), self._steps, records)

    def unclear(self, suspects: DataFrame) -> DataFrame:
        """What ``judging`` needs to know of parsed rows that are suspect."""
        return reduce(lambda rows, step: step.of(rows), self._unclear_steps, suspects)

    def _raw_type(self) -> str:
        """What the parser is asked for: times and dates as text (their rules are ours), CSV cells
        as text."""
        fields = [f"`{c.name}` {self._parsed_as(c)}" for c in self._record.schema]
        return ", ".join([*fields, "_corrupt string"])

    def _parsed_as(self, column: Declared) -> DataType:
        if self._format == "csv":
            return STRING
        rule = self._record.event_time
        if column.type == TIMESTAMP and column.name == rule.column and "epoch" in rule.format:
            return BIGINT
        return STRING if is_time(column.type) else column.type

    def _event_id(self) -> Column:
        if not self._record.event_id:
            return F.concat_ws(
                ":", F.col("partition").cast("string"), F.col("offset").cast("string")
            )
        texts = [_raw(name).cast("string") for name in self._record.event_id]
        if len(texts) == 1:
            return texts[0]
        complete = reduce(Column.__and__, (t.isNotNull() for t in texts))
        return F.when(complete, F.to_json(F.array(*texts)))

    def _field(self, column: Declared) -> Column:
        raw = _raw(column.name)
        if column.type == TIMESTAMP:
            is_event_time = column.name == self._record.event_time.column
            time = F.col("_time") if is_event_time else F.col(f"_times.`{column.name}`")
            return in_range(time).alias(column.name)
        if column.type == DATE:
            return iso_date(raw).alias(column.name)
        as_declared = raw if self._format == "json" else raw.cast(str(column.type))
        return as_declared.alias(column.name)

    def _other_times(self) -> list[Declared]:
        event_time = self._record.event_time.column
        return [c for c in self._record.schema if c.type == TIMESTAMP and c.name != event_time]

    def _suspect(self) -> Column:
        """True unless the text plainly is one flat JSON object with fields of the right types.

        Spark's parser stops after the first document of a line, repairs invalid UTF-8, takes an
        object for a string, and gives a number beyond a double's range as text in quotes: hence
        the looks at braces and at how strings begin.
        """
        # Its only closing brace is the end; and what is not UTF-8 comes back from a split with
        # other bytes. Spark's own looks for either take each byte by itself.
        before_brace = F.split(self.text, "}", 2)[0]
        plain = [
            F.col("_raw._corrupt").isNull(),
            self.text == F.concat(before_brace, F.lit("}")),
            F.col("event_id").isNotNull(),
            F.col("event_time").isNotNull(),
            *(
                ~_raw(n).startswith(sign)
                for n in self._json_columns(is_text)
                for sign in ("{", "[", '"')
            ),
            *(F.abs(_raw(n)) != float("inf") for n in self._json_columns(is_floating)),
            *([~F.col("_odd")] if self._json_columns(is_decimal) else []),
            *(~wrong.isNotNull() for wrong in self._unconverted()),
        ]
        if self._record.unknown_fields != "ignore":
            names = F.array(*(F.lit(c.name) for c in self._record.schema))
            plain.append(F.size(F.array_except(F.json_object_keys(self.text), names)) == 0)
        return ~reduce(Column.__and__, (F.coalesce(p, F.lit(True)) for p in plain))

    def _json_columns(self, kind: Callable[[DataType], bool]) -> list[str]:
        """Columns of a kind of type where records are JSON: CSV has only text."""
        typed = [] if self._format == "csv" else self._record.schema
        return [c.name for c in typed if kind(c.type)]

    def _all_unconverted(self) -> Column:
        # An array of nothing would have no type.
        return F.array_compact(F.array(*self._unconverted()).cast("array<string>"))

    def _unconverted(self) -> list[Column]:
        """The name of each column whose text Spark could not convert, else null."""
        return [
            F.when(_raw(c.name).isNotNull() & F.col(f"record.`{c.name}`").isNull(), F.lit(c.name))
            for c in self._record.schema
            if c.name != self._record.event_time.column
            and (is_time(c.type) or self._format == "csv")
        ]


def record_type(record: Record) -> Struct:
    """The type of bronze's ``record`` column."""
    return Struct.of({c.name: c.type for c in record.schema})


def _raw(name: str) -> Column:
    return F.col(f"_raw.`{name}`")
