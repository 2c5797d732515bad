"""Columns to select, handed to the JVM once."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame

from headgate import jvm


class Projection:
    """The same ``select`` for one batch after the other. PySpark's own takes several calls into
    the JVM for every column and name, every time: a third of a small batch's calls."""

    def __init__(self, *columns: Column | str) -> None:
        self._columns = columns
        self._seq: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """``frame.select(*columns)``."""
        if self._seq is None:
            self._seq = jvm.java_columns(frame, self._columns)
        return jvm.select(frame, self._seq)
