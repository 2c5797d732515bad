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
    from headgate.flow.gold.pairs import Assignment
    from headgate.flow.gold.stage import GoldStage
    from headgate.lake.tables.table import TableOf

Declared = TypeVar("Declared")


class FoldOperator(Operator[Declared]):
    """A fold whose results merge by key and bounds. One that merges them in another way, such as
    sessions, brings an aggregator and affected results of its own."""

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

    def stage(
        self,
        spark: SparkSession,
        table: TableOf,
        declared: GoldTable,
        above: GoldTable | None = None,
    ) -> GoldStage:
        from headgate.flow.gold.fold import GoldFold
        from headgate.flow.gold.fold_stage import FoldStage
        from headgate.flow.gold.pairs import Pairs
        from headgate.flow.gold.rollup.stage import RollupStage

        assignment = self.assignment(declared.operator, declared)
        aggregator = self.aggregator(declared, assignment)
        affected = self.affected(declared, assignment, aggregator)
        pairs = Pairs(declared, assignment)
        fold = GoldFold(spark, declared, pairs, assignment, aggregator, affected)
        return FoldStage(table, fold) if above is None else RollupStage(table, fold, above)
