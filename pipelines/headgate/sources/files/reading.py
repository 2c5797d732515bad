"""Reads recorded files natively, with a position for every record.

Text: position = byte start of the split + number of the line in it. A split is always a task of
its own (the session fixes ``maxPartitionBytes`` = ``openCostInBytes``), so neither depends on the
other files of the batch. Every counted line has at least two bytes, so the positions of one split
never reach the start of the next. Parquet: position = row number in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.sources.files.cells import csv_header
from headgate.sources.files.declared import FilesSource
from headgate.sources.files.log import LoggedFile
from headgate.storage.files import Storage
from headgate.storage.globs import literal
from headgate.storage.places import split_scheme
from headgate.tables.projection import Projection
from headgate.tables.record_shape import HEADERS, offset_of

_ROW_BITS = (1 << 33) - 1
"""monotonically_increasing_id has the row's number within its task in the low 33 bits."""

_QUOTES = {"escape": '"'}
"""A quote within quotes is doubled, as in RFC 4180; Spark's default is a backslash."""

# Java's URI leaves these as they are; Spark's _metadata.file_path is such a URI.
_PLAIN = frozenset("_-!.~'()*:@&=+$,;/")


class FilesReader:
    """Reads recorded files of one source as frames with the schema of ``record_shape``."""

    def __init__(self, spark: SparkSession, landing: Storage, source: FilesSource) -> None:
        self._spark = spark
        self._landing = landing
        self._source = source
        self._line = Projection(
            "value",
            F.col("_metadata.file_path").alias("uri"),
            F.col("_metadata.file_block_start").alias("start"),
        )
        self._counts = F.expr(r"startswith(value, '{') or not value rlike r'^[ \t\r]*$'")
        row = F.monotonically_increasing_id().bitwiseAND(_ROW_BITS)
        self._numbered = Projection(
            "value",
            "uri",
            (F.col("start") + row).alias("position"),
        )
        self._record = Projection(
            "value",
            *(["parse"] if source.format == "csv" else []),
            F.lit(None).cast("binary").alias("key"),
            F.lit(None).cast(str(HEADERS)).alias("headers"),
            F.lit(0).alias("partition"),
            (F.col("base") + F.col("position")).alias("offset"),
            "file",
            "ingested_at",
            F.col("ingested_at").alias("seen_at"),
        )

    def read(self, files: Sequence[LoggedFile]) -> DataFrame:
        """The records of ``files``."""
        read = {"json": self._lines, "csv": self._csv, "parquet": self._parquet}
        rows = read[self._source.format](files)
        return self._record.of(rows.join(F.broadcast(self._sequences(files)), "uri", "left"))

    def _sequences(self, files: Sequence[LoggedFile]) -> DataFrame:
        table = pa.table(
            {
                "uri": [file_uri(self._landing.uri(f.path)) for f in files],
                "file": [f.path for f in files],
                "base": pa.array([offset_of(f.sequence) for f in files], pa.int64()),
                "ingested_at": pa.array([f.modified for f in files], pa.timestamp("us", "UTC")),
            }
        )
        return self._spark.createDataFrame(table)

    def _paths(self, files: Sequence[LoggedFile]) -> list[str]:
        return [literal(self._landing.uri(f.path)) for f in files]

    def _lines(self, files: Sequence[LoggedFile]) -> DataFrame:
        text = self._spark.read.option("lineSep", "\n").text(self._paths(files))
        return self._numbered.of(self._line.of(text).where(self._counts))

    def _csv(self, files: Sequence[LoggedFile]) -> DataFrame:
        """Lines, parsed under the header of their own file into a JSON object of texts."""
        if self._source.csv_multiline:
            return self._csv_multiline(files)
        groups: dict[tuple[str, ...], list[LoggedFile]] = {}
        for file in files:
            groups.setdefault(csv_header(self._landing, self._source, file.path), []).append(file)
        parts = [self._csv_group(group, header) for header, group in groups.items()]
        return reduce(DataFrame.unionByName, parts)

    def _csv_group(self, files: Sequence[LoggedFile], header: tuple[str, ...]) -> DataFrame:
        schema = ", ".join(f"`{_quoted(name)}` string" for name in (*header, "_corrupt"))
        options = {
            "sep": self._source.csv_delimiter,
            "columnNameOfCorruptRecord": "_corrupt",
            **_QUOTES,
        }
        lines = self._lines(files).where("position > 0")
        line = F.regexp_replace("value", r"\r$", "")
        cells = lines.withColumn("cells", F.from_csv(line, schema, options))
        fields = F.struct(*(F.col(f"cells.`{_quoted(name)}`").alias(name) for name in header))
        parse = F.when(F.col("cells._corrupt").isNull(), F.to_json(fields))
        return cells.select("value", parse.alias("parse"), "uri", "position")

    def _csv_multiline(self, files: Sequence[LoggedFile]) -> DataFrame:
        """Records may span lines, so a record's value is its JSON rendering. One task per file."""
        reader = self._spark.read.option("header", "true").option("multiLine", "true")
        reader = reader.option("sep", self._source.csv_delimiter)
        reader = reader.options(**_QUOTES)
        rows = reader.option("inferSchema", "false").csv(self._paths(files))
        text = F.to_json(F.struct(*(F.col(f"`{_quoted(c)}`") for c in rows.columns)))
        row = F.monotonically_increasing_id().bitwiseAND(_ROW_BITS)
        return rows.select(
            text.alias("value"),
            text.alias("parse"),
            F.col("_metadata.file_path").alias("uri"),
            row.alias("position"),
        )

    def _parquet(self, files: Sequence[LoggedFile]) -> DataFrame:
        """A Parquet row has no bytes of its own, so its value is its JSON rendering."""
        reader = self._spark.read.option("mergeSchema", "true")
        rows = reader.parquet(*self._paths(files))
        text = F.to_json(F.struct(*(F.col(f"`{_quoted(c)}`") for c in rows.columns)))
        return rows.select(
            text.alias("value"),
            F.col("_metadata.file_path").alias("uri"),
            F.col("_metadata.row_index").alias("position"),
        )


def _quoted(name: str) -> str:
    return name.replace("`", "``")


def file_uri(path: str) -> str:
    """The address of a file as Spark's ``_metadata.file_path`` spells it."""
    scheme, rest = split_scheme(path)
    return f"{scheme or 'file:'}{_escaped(rest)}"


def _escaped(path: str) -> str:
    return "".join(
        c if (c.isascii() and c.isalnum()) or c in _PLAIN or ord(c) > 127 else _percent(c)
        for c in path
    )


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
