"""Parses a source's bytes to records: fields, id, event time, and whether to validate them.

Everything is a column expression that cannot fail. Validity is not decided here. A record that is
not clearly valid has ``needs_validation``, and ``validation`` finds the quarantine reason, if there
is one. Most records take this fast path.
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
    """Parses records of one declaration; flagged records are validated by their ``text``.
    The expressions are built once: building them for every batch costs more than a small batch."""

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
        # A projection cannot use its own columns. Several steps avoid computing one twice.
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
            # Hashes are computed here, while the bytes are in the processor's cache.
            Projection(
                *kept,
                "event_id",
                "event_time",
                "record",
                self._needs_validation().alias("needs_validation"),
                *hashes(F.col("event_id") if record.event_id else F.lit(None).cast("string")),
            ),
        )
        self._validation_steps = (
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
        record (a struct of the declared columns), needs_validation and ``HASHES``."""
        return reduce(lambda rows, step: step.of(rows), self._steps, records)

    def to_validate(self, flagged: DataFrame) -> DataFrame:
        """The columns of ``validation.ParsedRecord`` for parsed rows that need validation."""
        return reduce(lambda rows, step: step.of(rows), self._validation_steps, flagged)

    def _raw_type(self) -> str:
        """The schema given to the parser. Times and dates are read as text and converted by our
        own rules; CSV cells are text."""
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

    def _needs_validation(self) -> Column:
        """True unless the text is clearly one flat JSON object with fields of the right types.

        Spark's parser stops after the first document of a line, repairs invalid UTF-8, takes an
        object for a string, and gives a number beyond a double's range as text in quotes.
        Therefore braces and the first character of strings are checked.
        """
        # The only closing brace must be the last character. A split also changes bytes that are
        # not UTF-8. It is faster than Spark's functions that check each byte.
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
        """The columns of a kind of type, if records are JSON. CSV has text only."""
        typed = [] if self._format == "csv" else self._record.schema
        return [c.name for c in typed if kind(c.type)]

    def _all_unconverted(self) -> Column:
        # An empty array would have no type without the cast.
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
