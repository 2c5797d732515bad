"""The base of operators that fold."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from headgate.declaration.contracts.operator import Operator
from headgate.declaration.model import GoldTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.flow.gold.affected import AffectedResults
    from headgate.flow.gold.aggregator import Aggregator
    from headgate.flow.gold.fold import GoldFold
    from headgate.flow.gold.pairs import Assignment
    from headgate.flow.gold.stage import GoldStage
    from headgate.lake.tables.table import TableOf

Declared = TypeVar("Declared")


class FoldOperator(Operator[Declared]):
    """A fold whose results merge by key and bounds. One that merges them in another way, such as
    sessions, brings an aggregator and affected results of its own."""

    rolls_up = True

    @abstractmethod
    def assignment(self, operator: Declared, declared: GoldTable) -> Assignment:
        """How silver rows are assigned to results."""

    def aggregator(self, declared: GoldTable, assignment: Assignment) -> Aggregator:
        """How pairs are folded into results."""
        from headgate.flow.gold.aggregator import Aggregator

        return Aggregator(declared, assignment.end)

    def affected(
        self, declared: GoldTable, assignment: Assignment, aggregator: Aggregator
    ) -> AffectedResults:
        """Which results a correction may change."""
        from headgate.flow.gold.affected import AffectedResults

        return AffectedResults(declared, aggregator, assignment.end)

    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        from headgate.flow.gold.fold_stage import FoldStage

        return FoldStage(table, self._fold(spark, declared))

    def rollup_stage(
        self, spark: SparkSession, table: TableOf, declared: GoldTable, above: GoldTable
    ) -> GoldStage:
        from headgate.flow.gold.rollup.stage import RollupStage

        return RollupStage(table, self._fold(spark, declared), above)

    def _fold(self, spark: SparkSession, declared: GoldTable) -> GoldFold:
        from headgate.flow.gold.fold import GoldFold
        from headgate.flow.gold.pairs import Pairs

        assignment = self.assignment(declared.operator, declared)
        aggregator = self.aggregator(declared, assignment)
        affected = self.affected(declared, assignment, aggregator)
        pairs = Pairs(declared, assignment)
        return GoldFold(spark, declared, pairs, assignment, aggregator, affected)
