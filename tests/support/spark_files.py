"""Files as Spark reads them. The engine reads them in Python, with the same results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ROW = "(monotonically_increasing_id() & ((1L << 33) - 1))"
"""A row's number in its task."""


@contextmanager
def split_size(spark: SparkSession, size: int) -> Iterator[None]:
    """Makes each split of ``size`` bytes a task of its own."""
    settings = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = [spark.conf.get(setting) for setting in settings]
    try:
        for setting in settings:
            spark.conf.set(setting, str(size))
        yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            spark.conf.set(setting, str(value))


def spark_lines(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """``value`` (binary), ``name`` and ``position`` of the lines that are not blank."""
    text = spark.read.option("lineSep", "\n").text([str(path) for path in paths])
    counted = text.select(
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_name").alias("name"),
        F.col("_metadata.file_block_start").alias("start"),
    ).where(r"not value rlike '^[ \t\r]*$'")
    return counted.select("value", "name", F.expr(f"start + {ROW}").alias("position"))


def spark_cells(lines: DataFrame, header: Sequence[str], delimiter: str) -> DataFrame:
    """``value`` and ``document`` of lines that are not a header."""
    schema = ", ".join(f"`{name}` string" for name in (*header, "_corrupt"))
    options = {"sep": delimiter, "columnNameOfCorruptRecord": "_corrupt", "escape": '"'}
    line = F.regexp_replace(F.col("value").cast("string"), r"\r+$", "")
    cells = lines.withColumn("cells", F.from_csv(line, schema, options))
    fields = F.struct(*(F.col(f"cells.`{name}`").alias(name) for name in header))
    document = F.when(F.col("cells._corrupt").isNull(), F.to_json(fields))
    return cells.select("value", document.cast("binary").alias("document"))


def spark_csv_rows(spark: SparkSession, path: Path) -> list[bytes]:
    """The rows of a file whose cells may have line breaks."""
    reader = spark.read.option("header", "true").option("multiLine", "true")
    return _rendered(reader.option("escape", '"').option("inferSchema", "false").csv(str(path)))


def spark_parquet_rows(spark: SparkSession, path: Path) -> list[bytes]:
    return _rendered(spark.read.parquet(str(path)))


def _rendered(rows: DataFrame) -> list[bytes]:
    text = F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns)))
    return [row[0].encode() for row in rows.select(text).collect()]
