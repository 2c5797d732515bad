"""Access to Spark's JVM: the only module that uses py4j internals.

PySpark has no public interface for these functions, and any version may break them. None of them
works with a remote session (Spark Connect).

The JVM ends with its driver, however the driver ends: PySpark starts it with a pipe as its stdin,
and it exits when the pipe is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame


def java(spark: SparkSession) -> Any:
    """The classes of the JVM by full name: ``java(spark).java.util.HashMap()``."""
    view = spark._jvm
    assert view is not None, "the session has ended"
    return view


def has_ended(spark: SparkSession, *, within: float = 0.5) -> bool:
    """Whether the JVM that was started for a session has ended, or ends in ``within`` seconds: a
    killed JVM closes its connections a moment before it ends."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:  # another program has started it
        return False
    with suppress(TimeoutExpired):
        process.wait(within)
    return process.poll() is not None


def leave_out_checksum_files(spark: SparkSession) -> None:
    """Keep Hadoop from writing a ``.crc`` beside every local file and forking a chmod for it. The
    pages of a Parquet file have checksums of their own, which are verified."""
    configuration = spark._jsc.hadoopConfiguration()
    java(spark).org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(False)


def ignore_termination(spark: SparkSession) -> None:
    """Keep the JVM alive when SIGTERM goes to all processes of a driver: the driver ends the JVM
    after its batch. A JVM whose driver has ended ends in any case (see above). PySpark ignores
    Ctrl-C already."""
    signals = java(spark).sun.misc
    # A JVM with -Xrs refuses this. The user may have set this option.
    with suppress(Py4JJavaError):
        signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)


def register_null_on_error(spark: SparkSession) -> None:
    """Add ``null_on_error(x)`` to the SQL of a session: the value of ``x``, or null for a row for
    which it fails. It is Catalyst's TryEval, which Spark has behind its own try_ functions."""
    view = java(spark)
    loader = view.java.lang.Thread.currentThread().getContextClassLoader()
    catalyst = view.org.apache.spark.sql.catalyst
    name = "org.apache.spark.sql.catalyst.expressions.TryEval"
    class_ = view.scala.reflect.ClassTag.apply(view.java.lang.Class.forName(name, True, loader))
    built = catalyst.analysis.FunctionRegistryBase.build(
        "null_on_error", view.scala.Option.empty(), class_
    )
    session: Any = spark
    functions = session._jsparkSession.sessionState().functionRegistry()
    functions.createOrReplaceTempFunction("null_on_error", built._2(), "built-in")


class _Remembered:
    """A class of the JVM whose static members are looked up once."""

    def __init__(self, class_: Any) -> None:
        self._class = class_

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._class, name)
        setattr(self, name, found)
        return found


def remember_functions(spark: SparkSession) -> None:
    """Look up the functions behind PySpark's columns once. PySpark looks them up in the JVM at each
    use, which is half of all calls when plans are built."""
    view = java(spark)
    for name in ("org.apache.spark.sql.functions", "functions", "PythonUtils"):
        if name not in vars(view):  # an earlier session of the same JVM may have set it
            setattr(view, name, _Remembered(getattr(view, name)))


def java_columns(frame: DataFrame, columns: Sequence[Column | str]) -> Any:
    """Columns in the form that ``select`` takes. They can be used for several frames."""
    return cast(ClassicDataFrame, frame)._jcols(*columns)


def select(frame: DataFrame, columns: Any) -> DataFrame:
    """``frame.select`` with ``java_columns``, in one call into the JVM."""
    classic = cast(ClassicDataFrame, frame)
    return ClassicDataFrame(classic._jdf.select(columns), classic.sparkSession)
