"""Spark's JVM behind PySpark: the only module that reaches through to py4j.

PySpark has no name for what is here, and may rename it in any version. Nothing of this works on a
session that is remote (Spark Connect).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame


def java(spark: SparkSession) -> Any:
    """The classes of the JVM, by their full names: ``java(spark).java.util.HashMap()``."""
    view = spark._jvm
    assert view is not None, "the session has ended"
    return view


def leave_out_checksum_files(spark: SparkSession) -> None:
    """Hadoop would write a ``.crc`` beside every local file and fork a chmod for it. The pages of
    a Parquet file have checksums of their own; those are verified."""
    configuration = spark._jsc.hadoopConfiguration()
    java(spark).org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(False)


def java_columns(frame: DataFrame, columns: Sequence[Column | str]) -> Any:
    """Columns as ``select`` takes them, to be used for other frames, too."""
    return cast(ClassicDataFrame, frame)._jcols(*columns)


def select(frame: DataFrame, columns: Any) -> DataFrame:
    """``frame.select`` of ``java_columns``, in one call into the JVM."""
    classic = cast(ClassicDataFrame, frame)
    return ClassicDataFrame(classic._jdf.select(columns), classic.sparkSession)


def forget_checkpoint(frame: DataFrame) -> None:
    """Let go of the memory that a frame's local checkpoint holds."""
    checkpointed = cast(ClassicDataFrame, frame)._jdf.queryExecution().logical().rdd()
    checkpointed.unpersist(False)


def held_in_memory_count(spark: SparkSession) -> int:
    """How many frames the session holds in memory."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())
