"""The contract of gold operators for drivers: the declaration's contract, and the part that runs.

Two kinds of operator are planned. A *fold* keeps the open results of a table as states in its open
rows, and merges each batch into them; ``FoldOperator`` shares the stage of all of them. Any other
operator brings a ``GoldStage`` of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headgate.declaration.model import GoldTable
from headgate.declaration.operators import OperatorKind
from headgate.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.flow.gold.assignment import Assignment
    from headgate.flow.operations.contract import Place
    from headgate.lake.tables.history import Watermarks
    from headgate.lake.tables.table import Table, TableOf
    from headgate.lake.tables.table_schema import TableSchema

Operator = TypeVar("Operator")


class GoldStage(Protocol):
    """The only writer of ``gold/<table>`` and ``late/<table>``. ``silver`` is a separate reader of
    the silver table. ``places`` are the two tables for operations, the late table first.

    The content of the tables at batch id n is a function of silver at n and of the operations up to
    n. It does not depend on where batches end, or on restarts. One commit per table contains rows,
    state and counts. The late table is committed first: if a gold table is at n, its late table is
    at n too. The commits count the pairs of silver's rows: ``pairs = folded + late``.
    """

    silver: Table
    late: Table
    gold: Table
    places: Sequence[Place]

    def shapes(self, silver: StructType) -> Sequence[TableSchema]:
        """Both tables as declared, the late table first. ``silver`` is the row type of silver."""

    def catch_up(
        self, upto: int, now: datetime, most_steps: int | None, watermarks: Watermarks
    ) -> None:
        """Process silver up to batch ``upto``, in no more than ``most_steps`` commits.
        ``watermarks`` are those of operations (``history.batches``).

        Raises CommitRefusedError, FencedError or LogGapError.
        """

    def late_pairs(self, rows: DataFrame) -> DataFrame:
        """The pairs of some silver rows that would be late if the rows arrived now: each row once
        for every result that it would be late for."""


class RunnableOperator(OperatorKind[Operator]):
    """Members import Spark only inside methods, because declarations are read without it."""

    @abstractmethod
    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        """The stage of one gold table. ``table`` gives the tables that it reads and writes."""


class FoldOperator(RunnableOperator[Operator]):
    """A fold whose results merge by key and bounds. One that merges them in another way, such as
    sessions, overrides ``stage`` and brings an aggregator of its own."""

    @abstractmethod
    def assignment(self, operator: Operator, declared: GoldTable) -> Assignment:
        """How silver rows are assigned to results."""

    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        from headgate.flow.gold.aggregator import Aggregator
        from headgate.flow.gold.fold_stage import FoldStage

        pairing = self.assignment(declared.operator, declared)
        return FoldStage(spark, table, declared, pairing, Aggregator(declared, pairing.end))


OPERATORS: Registry[RunnableOperator[Any]] = Registry(
    "headgate.flow.gold.operators", RunnableOperator
)


def stage_of(spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
    """The stage of a gold table, by its operator."""
    return OPERATORS[declared.kind].stage(spark, table, declared)


def is_final(spark: SparkSession, table: TableOf, declared: GoldTable) -> Column:
    """Whether the result of a late row of a gold table is final now."""
    from headgate.flow.gold import late_replay

    stage = stage_of(spark, table, declared)
    (end,) = (place.end for place in stage.places if place.end is not None)
    return late_replay.is_final(end, stage.gold.refresh(), declared)
