"""A patch of a gold table: the final rows that a correction changes, adds or removes.

A correction computes the rows that some results should have, and compares them with those that the
table has. The rows that differ are the patch. Numbers of floating point that are nearly equal are
the same (``lake.tables.row_values``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import FINAL, STATE, DataFile
from headgate.lake.tables.frames import struct_of
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_counts import require_all
from headgate.lake.tables.row_values import NEAR, comparable, is_floating
from headgate.lake.tables.staging import stage
from headgate.lake.tables.state import State, add_counts, time_of

CHANGE = "_change"
EQUAL, CHANGED, NEW, GONE = "equal", "changed", "new", "gone"


class RowComparison:
    """``key`` are the columns that identify a row, ``values`` the other columns that are compared.
    ``type_`` is the type of the rows."""

    def __init__(self, key: Sequence[str], values: Sequence[str], type_: StructType) -> None:
        self._key, self._values = tuple(key), tuple(values)
        self._types = {field.name: field.dataType for field in type_}
        self._columns = [field.name for field in type_]

    def of(self, before: DataFrame, after: DataFrame) -> DataFrame:
        """Joins the rows of both sides by key; the columns are ``old``, ``new`` and ``CHANGE``."""
        old, new = (
            rows.select(struct_of(self._key).alias("_key"), struct_of(self._columns).alias(s))
            for rows, s in ((before, "old"), (after, "new"))
        )
        joined = old.join(new, "_key", "full_outer").drop("_key")
        same = F.lit(True)
        for name in self._values:
            same &= self.is_same(name)
        change = F.when(F.col("old").isNull(), NEW).when(F.col("new").isNull(), GONE)
        return joined.withColumn(CHANGE, change.when(same, EQUAL).otherwise(CHANGED))

    def patch(self, compared: DataFrame) -> DataFrame:
        """The rows that differ: ``CHANGE`` and the columns of a row. A row that is gone has its old
        values."""
        differing = compared.where(F.col(CHANGE) != EQUAL)
        row = F.when(F.col("new").isNotNull(), F.col("new")).otherwise(F.col("old"))
        return differing.select(CHANGE, row.alias("row")).select(CHANGE, "row.*")

    def side(self, side: str, name: str) -> Column:
        """A value, in a form that can be compared. ``side`` is ``old`` or ``new``."""
        return comparable(F.col(f"{side}.`{name}`"), self._types[name])

    def is_same(self, name: str, other: str = "new") -> Column:
        """Whether a column has the same value on both sides, ``old`` and ``other``."""
        old, new = self.side("old", name), self.side(other, name)
        same = old.eqNullSafe(new)
        if is_floating(self._types[name]):
            most = F.greatest(F.abs(old), F.abs(new), F.lit(1.0))
            # An infinity or a NaN is near nothing. In Spark, NaN is greater than every number.
            near = (most < F.lit(inf)) & (F.abs(old - new) <= most * NEAR)
            same |= F.coalesce(near, F.lit(False))
        return same


def patched(
    place: StageTable,
    state: State,
    patch: DataFrame,
    spans: Sequence[tuple[int, int]],
    pairs: int | None = 0,
) -> Change:
    """The commit that brings a patch into a gold table. A row that differs gets the next revision;
    one that nobody has seen before is no correction, and has revision 0.

    ``spans`` are the times of the patch's rows, by the table's time column, in microseconds since
    1970 UTC, both ends included. ``pairs`` is the number of pairs that the correction adds to final
    results: by so much the table's first ``count(*)`` grows. The rest of its growth is counted as
    ``backfilled``, unless ``pairs`` is None: the state counts the growth already.
    """
    table, count = place.table, F.expr(f"`{place.counter}`" if place.counter else "0")
    final, old = final_rows_within(place, spans)
    before = old.select("_key", F.col("revision").alias("_revision"), count.alias("_count"))
    joined = _keyed(place, patch).join(before, "_key", "left").persist()
    try:
        changes = (F.count(F.when(F.col(CHANGE) == c, 1)).alias(c) for c in (CHANGED, NEW, GONE))
        is_there = F.when(F.col(CHANGE) != GONE, count)
        growth = F.sum(F.coalesce(is_there, F.lit(0)) - F.coalesce("_count", F.lit(0)))
        length = F.max(_length(place) if place.end_varies else F.lit(0))
        found = joined.agg(*changes, growth.alias("growth"), length.alias("length")).collect()[0]
        changed, new, gone = (int(found[each]) for each in (CHANGED, NEW, GONE))
        if not changed + new + gone:
            return Change(state)
        columns = [f"`{name}`" for name in old.columns if name != "_key"]

        def staged(rows: DataFrame) -> tuple[DataFile, ...]:
            rows = rows.select(*columns)
            return stage(table, state, rows, time_column=place.time_column, most_files=1)

        revision = F.coalesce(F.col("_revision") + F.lit(1), F.lit(0)).cast("int")
        rows = joined.where(F.col(CHANGE) != GONE).withColumn("revision", revision)
        added = staged(rows.withColumn("updated_at", F.lit(time_of(state.at))))
        there = sum(file.rows for file in added)
        require_all(table.name, state, there, changed + new, "rows of a correction are in files")
        moved = staged(old.join(joined.select("_key"), "_key", "left_anti"))
    finally:
        joined.unpersist()
    total = add_counts(state.total, {"final": new - gone})
    backfilled = 0
    if place.counter and pairs is not None:
        backfilled = int(found["growth"]) - pairs
    if backfilled or "backfilled" in total:
        total = add_counts(total, {"backfilled": backfilled})
    payload = _at_least(GoldPayload.of(state), int(found["length"]))
    state = replace(state, payload=payload, total=total, changed_at=state.at)
    return Change(state, add=added, remove=final, moved=moved)


def with_open_rows(
    place: StageTable,
    change: Change,
    held: Sequence[DataFile],
    computed: DataFrame,
    kept: DataFrame,
) -> Change:
    """A change that replaces open rows, too. ``held`` are the files of all open rows, ``computed``
    are open rows that replace others or are new, ``kept`` those that stay; both have states."""
    state, table = change.state, place.table

    def staged(rows: DataFrame) -> tuple[DataFile, ...]:
        rows = rows.drop(FINAL).withColumn(FINAL, F.lit(False))
        return stage(table, state, rows, time_column=place.time_column)

    length = computed.agg(F.max(_length(place)).alias("length")).collect()[0]["length"]
    added, moved = staged(computed), staged(kept)
    count = sum(file.rows for file in (*added, *moved))
    payload = replace(_at_least(GoldPayload.of(state), int(length or 0)), open=count)
    return Change(
        replace(state, payload=payload, changed_at=state.at),
        add=(*change.add, *added),
        remove=(*change.remove, *held),
        moved=(*change.moved, *moved),
    )


def _length(place: StageTable) -> Column:
    """The length of a result in microseconds."""
    assert place.end is not None
    return place.end - F.unix_micros(place.time_column)


def _at_least(payload: GoldPayload, length: int) -> GoldPayload:
    return replace(payload, longest=max(payload.longest, length))


def final_rows_within(
    place: StageTable, spans: Sequence[tuple[int, int]]
) -> tuple[Sequence[DataFile], DataFrame]:
    """The files of final rows that may be within some spans, and their rows with ``_key``."""
    found = overlapping_files(place.table.handle, place.time_column, spans)
    files = [file for file in found if file.is_final]
    return files, _keyed(place, place.rows(files).drop(STATE).withColumn(FINAL, F.lit(True)))


def _keyed(place: StageTable, rows: DataFrame) -> DataFrame:
    """Rows with ``_key``: their result and key."""
    return rows.withColumn("_key", struct_of(place.key))
