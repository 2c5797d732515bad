"""A replay of late pairs: folds them into their final rows, which are computed again from silver.

The late table is marked first; it then shows which pairs a final row contains. A row contains all
its pairs of silver, except those in the late table that no replay has folded; why a pair was late
does not matter. So the change of gold is a function of the tables at the operation's batch id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import begin_of, columns_of
from headgate.declaration.model import GoldTable
from headgate.declaration.names import REPLAYED, STATUS_COLUMNS
from headgate.flow.gold.aggregator import GoldFold, batch_constants
from headgate.flow.gold.schema import gold_type, state_field, time_column
from headgate.flow.operations.stage_table import Change
from headgate.lake.tables.data_file import FINAL, STATE, DataFile
from headgate.lake.tables.frames import TableRows, micros
from headgate.lake.tables.history import files_at
from headgate.lake.tables.live_files import overlapping_files, partition_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_counts import require_all
from headgate.lake.tables.staging import stage
from headgate.lake.tables.state import State, add_counts, time_of
from headgate.lake.tables.table import Table

LATE_TIME = "_event_time"
_EVERYTHING = (-(1 << 62), 1 << 62)

Span = tuple[int, int]
"""The first and the last microsecond of a time."""


@dataclass(frozen=True)
class LatePairSelection:
    """Selects late pairs: their event times are in ``[begin, end)`` (microseconds since 1970 UTC,
    None for no bound), their keys have the values ``keys``, as text or null, and their rows'
    offsets are in ``offsets``, both ends included (None for no bound)."""

    begin: int | None
    end: int | None
    keys: tuple[tuple[str, str | None], ...]
    offsets: Span | None = None

    @staticmethod
    def of(document: Document) -> LatePairSelection:
        keys = document["keys"]
        span, offsets = (document["from"], document["to"]), document.get("offsets")
        return LatePairSelection(
            *span, tuple(sorted(keys.items())), tuple(offsets) if offsets else None
        )

    @property
    def span(self) -> Span:
        first, end = _EVERYTHING
        return (
            first if self.begin is None else self.begin,
            (end if self.end is None else self.end) - 1,
        )

    def files(self, late: Table) -> tuple[DataFile, ...]:
        """The files of a late table that may have selected pairs."""
        return overlapping_files(late.handle, LATE_TIME, [self.span])

    def has(self, table: GoldTable) -> Column:
        """Whether a late pair is selected and no replay has folded it before. No pair is selected
        if the table no longer has one of the keys."""
        meant = F.col(REPLAYED).isNull() & F.unix_micros(LATE_TIME).between(*self.span)
        if self.offsets is not None:
            meant &= F.col("_offset").between(*self.offsets)
        by = {b.name: F.expr(f"cast(({b.expression}) as {b.type})") for b in table.by}
        for name, value in self.keys:
            is_there = name in by
            wanted = F.lit(value).cast("string")
            meant &= by[name].cast("string").eqNullSafe(wanted) if is_there else F.lit(False)
        return meant


def is_result_final(end: Column, gold: State, declared: GoldTable) -> Column:
    """Whether a result that ends at ``end`` is final in a gold table with the state ``gold``."""
    through = GoldPayload.of(gold).final_through(micros(declared.allowed_lateness))
    return F.lit(False) if through is None else end <= through


class LateReplay:
    """What a replay changes in the late table and in the gold table of a fold."""

    def __init__(self, fold: GoldFold, silver: Table, late: Table, gold: Table) -> None:
        self._fold, declared = fold, fold.declared
        self._silver, self._late, self._gold = silver, late, gold
        self._silver_rows, self._late_rows = (
            TableRows(fold.spark, silver),
            TableRows(fold.spark, late),
        )
        self._gold_rows = TableRows(fold.spark, gold, state_field(declared))
        self._begin, self._time_column = begin_of(declared), time_column(declared)
        self._key = (*columns_of(declared), *(b.name for b in declared.by))
        self._columns = gold_type(declared).fieldNames()
        others = {*self._key, *STATUS_COLUMNS}
        self._values = [name for name in self._columns if name not in others]

    def mark(self, state: State, document: Document) -> Change:
        """Mark the late pairs that the document selects with the number of the replay. Pairs of
        open results wait for another replay: a pair is late by the watermark of its own partition,
        which may be ahead of the source's watermark. Raises LogGapError if another tool has
        rewritten silver, and the pairs could not be folded."""
        selection = LatePairSelection.of(document)
        files = selection.files(self._late)
        rows = self._late_rows.of(files)
        is_meant = is_result_final(self._fold.assignment.end, self._gold.state, self._fold.declared)
        is_meant &= selection.has(self._fold.declared)
        count = rows.where(is_meant).count()
        if not count:
            return Change(state)
        # What is marked must be folded. The batch of the late table is that of its last row.
        if self._silver.refresh().n > (n := self._gold.state.n):
            self._silver_files(n, [_EVERYTHING])
        number = F.lit(state.operation).cast("bigint")
        marked = rows.withColumn(REPLAYED, F.when(is_meant, number).otherwise(F.col(REPLAYED)))
        moved = stage(self._late, state, marked, time_column=LATE_TIME, most_files=1)
        total = add_counts(state.total, {"replayed": count})
        return Change(replace(state, total=total), remove=files, moved=moved)

    def unmark(self, state: State, document: Document) -> Change:
        """Take back what ``mark`` has marked: the pairs wait again."""
        files = LatePairSelection.of(document).files(self._late)
        rows, is_marked = self._late_rows.of(files), F.col(REPLAYED) == state.operation
        count = rows.where(is_marked).count()
        if not count:
            return Change(state)
        freed = rows.withColumn(REPLAYED, F.when(~is_marked, F.col(REPLAYED)))
        moved = stage(self._late, state, freed, time_column=LATE_TIME, most_files=1)
        total = add_counts(state.total, {"replayed": -count})
        return Change(replace(state, total=total), remove=files, moved=moved)

    def fold(self, state: State, document: Document) -> Change:
        """Compute again the rows of the pairs that ``mark`` has marked. A row that changes gets the
        next revision."""
        self._late.refresh()
        marked = self._late_within([LatePairSelection.of(document).span])
        marked = marked.where(F.col(REPLAYED) == state.operation)
        count = marked.count()
        if not count:
            return Change(state)
        total = add_counts(state.total, {"replayed": count})
        spans = self._spans(marked)
        old = self._gold_rows.of(files := self._final_files(spans)).drop(STATE)
        changed = self._changed(self._computed(state, marked, spans), old)
        observed = Observation()
        added = self._staged(state, changed.observe(observed, *_counts()))
        found, rows = observed.get, sum(f.rows for f in added)
        said = "changed rows are in its files"
        require_all(self._gold.name, state, rows, int(found["rows"]), said)
        total = add_counts(total, self._undone(state, old, added, count))
        if not added:
            return Change(replace(state, total=total))
        keys = self._keyed(self._gold_rows.of(added)).select("_key")
        kept = self._keyed(old).join(keys, "_key", "left_anti").drop("_key")
        moved = self._staged(state, kept.withColumn(FINAL, F.lit(True)))
        total = add_counts(total, {"final": int(found["new"])})
        state = replace(state, total=total, changed_at=state.at)
        return Change(state, add=added, remove=files, moved=moved)

    def _undone(
        self, state: State, old: DataFrame, added: Sequence[DataFile], count: int
    ) -> dict[str, int]:
        """The change of the count of a published backfill: rows that are computed again no longer
        contain what the backfill changed."""
        if (counter := self._fold.declared.counter) is None or "backfilled" not in state.total:
            return {}
        new = self._gold_rows.of(added)
        before = self._keyed(old).join(self._keyed(new).select("_key"), "_key", "left_semi")
        sums = (rows.agg(F.sum(f"`{counter}`")).collect()[0][0] or 0 for rows in (new, before))
        return {"backfilled": int(next(sums)) - int(next(sums)) - count}

    def _late_within(self, spans: Sequence[Span]) -> DataFrame:
        return self._late_rows.of(overlapping_files(self._late.handle, LATE_TIME, spans))

    def _spans(self, marked: DataFrame) -> list[Span]:
        """The times of the results of some pairs: disjoint and rising."""
        if not self._begin:
            return [_EVERYTHING]
        found = marked.select(F.unix_micros(*self._begin), self._fold.assignment.end).distinct()
        return list(_united(sorted((first, end - 1) for first, end in found.collect())))

    def _final_files(self, spans: Sequence[Span]) -> tuple[DataFile, ...]:
        if not self._begin:
            return partition_files(self._gold.handle, FINAL, True)
        named = overlapping_files(self._gold.handle, self._time_column, spans)
        return tuple(file for file in named if file.is_final)

    def _silver_files(self, n: int, spans: Sequence[Span]) -> tuple[DataFile, ...]:
        """The files that may have rows of some times, of the batches up to ``n``: silver may be
        ahead. No file has rows on both sides of an operation."""
        return files_at(
            self._silver, n, lambda version: overlapping_files(version, LATE_TIME, spans)
        )

    def _computed(self, state: State, marked: DataFrame, spans: Sequence[Span]) -> DataFrame:
        """The rows of the results and keys of some marked pairs."""
        silver = self._silver_rows.of(self._silver_files(state.n, spans))
        touched = self._fold.aggregator.keyed(marked).select("_key").distinct()
        pairs = self._fold.aggregator.keyed(self._fold.pairs.assigned(silver))
        pairs = pairs.join(touched, "_key", "left_semi")
        place = ["_partition", "_offset", *self._begin]
        waiting = self._late_within(spans).where(F.col(REPLAYED).isNull()).select(*place)
        states = self._fold.aggregator.states_of(pairs.join(waiting, place, "left_anti"))
        nothing = self._fold.aggregator.open_states(self._gold_rows.of(()))
        constants = batch_constants(self._fold.spark, time_of(state.at), _EVERYTHING[1])
        return self._fold.aggregator.folded(states, nothing, constants)

    def _changed(self, new: DataFrame, old: DataFrame) -> DataFrame:
        """The new rows that differ from the old ones or are not among them, with their revision: a
        row that nobody has seen before is no correction."""
        values = ("revision", *self._values)
        before = self._keyed(old).select(
            "_key", *(F.col(f"`{name}`").alias(f"_old_{name}") for name in values)
        )
        joined = self._keyed(new).join(before, "_key", "left")
        is_same = F.col("_old_revision").isNotNull()
        for name in self._values:
            is_same &= F.col(f"`{name}`").eqNullSafe(F.col(f"`_old_{name}`"))
        revision = F.coalesce(F.col("_old_revision") + F.lit(1), F.lit(0))
        changed = joined.where(~is_same).withColumn("revision", revision.cast("int"))
        return changed.select(*(f"`{name}`" for name in self._columns))

    def _keyed(self, rows: DataFrame) -> DataFrame:
        """Gold rows with ``_key``: their result and key."""
        return rows.withColumn("_key", F.struct(*(f"`{name}`" for name in self._key)))

    def _staged(self, state: State, rows: DataFrame) -> tuple[DataFile, ...]:
        return stage(self._gold, state, rows, time_column=self._time_column, most_files=1)


def _counts() -> Sequence[Column]:
    """How many rows a replay changes, and how many of them are new."""
    is_new = F.col("revision") == 0
    return F.count(F.lit(1)).alias("rows"), F.count(F.when(is_new, 1)).alias("new")


def _united(spans: Iterable[Span]) -> Iterator[Span]:
    """Merges rising spans that may overlap into disjoint ones."""
    first, last = None, None
    for begin, end in spans:
        if last is None or first is None:
            first, last = begin, end
        elif begin <= last + 1:
            last = max(last, end)
        else:
            yield first, last
            first, last = begin, end
    if first is not None and last is not None:
        yield first, last
