"""The values of rows as text, as a person is shown them (``row_changes``), and hashes of rows.

Hashes do not depend on where or in which order the rows were computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from headgate.lake.tables.row_changes import Values


def text_columns(names: Sequence[str], of: str = "") -> Column:
    """A struct of the columns as text; of the fields of the struct ``of``, if it is given, and null
    if that is null. Times are in the session's zone, UTC."""
    place = f"{of}." if of else ""
    found = F.struct(*(F.col(f"{place}`{name}`").cast("string").alias(name) for name in names))
    return F.when(F.col(of).isNotNull(), found) if of else found


def values_of(row: Row | None) -> Values | None:
    return None if row is None else row.asDict()


NEAR = 1e-9
"""Two numbers of floating point are the same if they differ by no more than this times the larger
of them, or of 1: a sum depends on the order of its parts."""
SEEDS = (17, 1_000_003)
_WHOLE = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}  # by default, milliseconds


def is_floating(type_: DataType) -> bool:
    return isinstance(type_, DoubleType | FloatType)


def comparable(value: Column, type_: DataType) -> Column:
    """A value in a form that can be compared. The hash skips nulls, also those in a value with
    parts, which is text here."""
    is_nested = isinstance(type_, ArrayType | MapType | StructType)
    return F.to_json(value, _WHOLE) if is_nested else value


def rounded(value: Column) -> Column:
    """Rounds a number, so that numbers that are the same become equal, unless a rounding limit is
    between them. The logarithm turns a relative difference into an absolute one. It also places the
    limits where no number with few digits is."""
    spread = F.signum(value) * F.log1p(F.abs(value))
    return F.rint(spread / NEAR) + F.lit(0.0)  # no -0.0


def row_hashes(values: Sequence[Column]) -> tuple[Column, ...]:
    """Two 64-bit hashes (xxHash) of some values, one for each of ``SEEDS``."""
    # The hash skips nulls. Without the flags, a null could change its column unseen.
    flags = [F.isnull(value) for value in values]
    return tuple(F.xxhash64(F.lit(seed), *flags, *values) for seed in SEEDS)
