"""A selection of columns that is sent to the JVM once."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame

from headgate.machine import jvm


class Projection:
    """The same ``select`` for many batches. PySpark's ``select`` makes several JVM calls per column
    each time: a third of all calls of a small batch."""

    def __init__(self, *columns: Column | str) -> None:
        self._columns = columns
        self._seq: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """``frame.select(*columns)``."""
        if self._seq is None:
            self._seq = jvm.java_columns(frame, self._columns)
        return jvm.select(frame, self._seq)
