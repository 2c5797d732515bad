"""The base of operators that fold."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from headgate.declaration.contracts.operator import Operator
from headgate.declaration.model import GoldTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.flow.gold.pairs import Assignment
    from headgate.flow.gold.stage import GoldStage
    from headgate.lake.tables.table import TableOf

Declared = TypeVar("Declared")


class FoldOperator(Operator[Declared]):
    """A fold whose results merge by key and bounds. One that merges them in another way, such as
    sessions, overrides ``stage`` and brings an aggregator of its own."""

    @abstractmethod
    def assignment(self, operator: Declared, declared: GoldTable) -> Assignment:
        """How silver rows are assigned to results."""

    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        from headgate.flow.gold.aggregator import Aggregator
        from headgate.flow.gold.fold_stage import FoldStage

        pairing = self.assignment(declared.operator, declared)
        return FoldStage(spark, table, declared, pairing, Aggregator(declared, pairing.end))
