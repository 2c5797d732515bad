"""Computes rows of a gold table from silver in one pass, without the open rows that it has.

A fold gives the same rows wherever batches end, so all pairs are folded at once. Pairs are late as
in the stage: by the row's watermark at arrival, and by the drains before its batch. A late pair is
folded if a replay of late pairs has selected it since, and has not left it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import begin_of, identity_columns, operator_of
from headgate.declaration.names import REPLAYED, SILVER_IDENTITY
from headgate.flow.gold.fold import GoldFold
from headgate.flow.gold.late_replay import LatePairSelection
from headgate.lake.tables.data_file import STATE

_BATCH = r".*/data/\d+-(\d+)-[^/]*/"
"""The last part of a path that looks like the folder of an attempt. A part of the root may look
like one, too."""


@dataclass(frozen=True)
class RecomputedResults:
    """The results that begin at or after ``begin`` and end at or before ``end``. Those that end at
    or before ``final_through`` are final. ``drains`` has the batch id of each drain and the end up
    to which it has closed the table. ``replays`` has the batch id of each replay of late pairs, its
    selection, and the end up to which results were final then. Times are microseconds since 1970
    UTC."""

    begin: int
    end: int
    final_through: int | None
    drains: tuple[tuple[int, int], ...] = ()
    replays: tuple[tuple[int, LatePairSelection, int], ...] = ()


def computed_rows(
    fold: GoldFold,
    silver: DataFrame,
    batches: Collection[int],
    meant: RecomputedResults,
    waiting: DataFrame,
    now: datetime,
) -> DataFrame:
    """The rows of ``gold_type``, final and open ones, of results that may lie in the range.
    ``silver`` are rows of files whose folders have the names of attempts, which contain batch ids:
    ``batches``. ``waiting`` are late pairs that replays have left out."""
    placed = silver.select("*", F.col("_metadata.file_path").alias("_path"))
    batch = F.regexp_extract("_path", _BATCH, 1).cast("bigint")
    placed = placed.withColumn("_n", batch).drop("_path")
    reach = operator_of(fold.declared).reach(fold.declared.operator)
    # A row at the end of a session belongs to it.
    last = meant.end + reach + bool(reach)
    found = fold.pairs.of(placed, None).where(fold.assignment.end <= last)
    found = found.where(F.unix_micros(*begin_of(fold.declared)) >= meant.begin - reach)
    late = F.col("_late").isNotNull() | _closed(fold, batches, meant)
    folded = found.withColumn(REPLAYED, F.lit(None).cast("bigint"))
    place = [*SILVER_IDENTITY, *identity_columns(fold.declared)]
    left_out = waiting.select(*place).withColumn("_waits", F.lit(True))
    folded = folded.join(left_out, place, "left")
    is_folded = ~late | (_replayed(fold, meant) & F.col("_waits").isNull())
    folded = folded.where(is_folded).drop(REPLAYED, "_n", "_late", "_waits")
    return fold.results(folded, now, meant.final_through).drop(STATE)


def _closed(fold: GoldFold, batches: Collection[int], meant: RecomputedResults) -> Column:
    """Whether a drain before the batch of a pair had closed its result. The end is looked up: one
    condition for each drain would be too much for Spark after hundreds of drains."""
    ends = {n: max((end for at, end in meant.drains if at < n), default=None) for n in batches}
    known = {n: end for n, end in ends.items() if end is not None}
    if not known:
        return F.lit(False)
    through = F.create_map(*map(F.lit, chain.from_iterable(known.items())))[F.col("_n")]
    return F.coalesce(fold.assignment.closed_by <= through, F.lit(False))


def _replayed(fold: GoldFold, meant: RecomputedResults) -> Column:
    """Whether a replay has folded a late pair."""
    if operator_of(fold.declared).end_varies:  # a replay folds into open results, too
        return _any_of(
            (F.col("_n") <= n) & selection.has(fold.declared) for n, selection, _ in meant.replays
        )
    return _any_of(
        (F.col("_n") <= n) & (fold.assignment.end <= final_through) & selection.has(fold.declared)
        for n, selection, final_through in meant.replays
        if final_through > meant.begin  # no result of the range was final before
    )


def _any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of some conditions is met. They are joined in pairs, because Spark's stack does
    not hold hundreds of nested conditions."""
    left = list(conditions)
    while len(left) > 1:
        pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
        left = [reduce(Column.__or__, pair) for pair in pairs]
    return left[0] if left else F.lit(False)
