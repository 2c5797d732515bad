"""The values of rows as text, as a person is shown them (``row_changes``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from headgate.lake.tables.row_changes import Values


def texts(names: Sequence[str], of: str = "") -> Column:
    """A struct of the columns as text; of the fields of the struct ``of``, if it is given, and null
    if that is null. Times are in the session's zone, UTC."""
    place = f"{of}." if of else ""
    found = F.struct(*(F.col(f"{place}`{name}`").cast("string").alias(name) for name in names))
    return F.when(F.col(of).isNotNull(), found) if of else found


def values_of(row: Row | None) -> Values | None:
    return None if row is None else row.asDict()
