"""The stage of a gold table, as drivers and backfills see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.model import GoldTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.flow.operations.stage_table import StageTable
    from headgate.lake.tables.history import Watermarks
    from headgate.lake.tables.table import Table, TableOf
    from headgate.lake.tables.table_schema import TableSchema


class GoldStage(Protocol):
    """The only writer of ``gold/<table>`` and ``late/<table>``. ``upstream`` has a separate reader
    of each silver table that it reads, or of the gold table that a rollup reads. ``places`` are the
    tables for operations, the late table first. A rollup has no late table.

    The content of the tables at batch id n is a function of silver at n and of the operations up to
    n. It does not depend on where batches end, or on restarts. One commit per table contains rows,
    state and counts. The late table is committed first: if a gold table is at n, its late table is
    at n too. The commits count the pairs of silver's rows: ``pairs = folded + late``.
    """

    upstream: Sequence[Table]
    gold: Table
    places: Sequence[StageTable]

    def shapes(self, silver: Mapping[str, StructType]) -> Sequence[TableSchema]:
        """The tables as declared, the late table first. ``silver`` has the row type of each silver
        table that it reads, by its name."""

    def reached(self) -> int:
        """The batch id up to which its upstream tables are now. Raises LogGapError."""

    def catch_up(
        self, upto: int, now: datetime, most_steps: int | None, watermarks: Watermarks
    ) -> None:
        """Process the upstream table up to batch ``upto``, in no more than ``most_steps`` commits.
        ``watermarks`` are those of operations (``history.batches``).

        Raises CommitRefusedError, FencedError or LogGapError.
        """

    def late_pairs(self, rows: DataFrame) -> DataFrame:
        """The pairs of some silver rows that would be late if the rows arrived now: each row once
        for every result that it would be late for."""

    def can_replay(self) -> Column:
        """Whether a replay would take a late row now, over the columns of the late table."""

    def left_out(self, document: Document) -> DataFrame:
        """The results, with their begins and ends in microseconds since 1970 UTC, whose late pairs
        a replay would leave waiting now: a published backfill has corrected them, and the replay
        would take that back."""


def gold_stage_of(
    spark: SparkSession, table: TableOf, declared: GoldTable, above: GoldTable | None = None
) -> GoldStage:
    """The stage of a gold table, by its operator. ``above`` is the table that a rollup reads."""
    operator = operator_of(declared)
    if above is None:
        return operator.stage(spark, table, declared)
    return operator.rollup_stage(spark, table, declared, above)
