"""The fold of one gold table: its parts, and its definition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from headgate.declaration.contracts.operator import identity_columns
from headgate.declaration.model import GoldTable
from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.affected import AffectedResults
from headgate.flow.gold.aggregator import Aggregator, batch_constants
from headgate.flow.gold.pairs import Assignment, Pairs


@dataclass(frozen=True)
class GoldFold:
    """The fold of one gold table."""

    spark: SparkSession
    declared: GoldTable
    pairs: Pairs
    assignment: Assignment
    aggregator: Aggregator
    affected: AffectedResults

    def included(self, silver: DataFrame, waiting: DataFrame) -> DataFrame:
        """The pairs of some rows of silver, except the late pairs ``waiting``."""
        place = [*SILVER_IDENTITY, *identity_columns(self.declared)]
        return self.pairs.assigned(silver).join(waiting.select(*place), place, "left_anti")

    def results(self, included: DataFrame, now: datetime, final_through: int | None) -> DataFrame:
        """The definition of the table: the rows of the results of some included pairs, and their
        states. A result is final if it ends at or before ``final_through`` (microseconds since
        1970 UTC)."""
        constants = batch_constants(self.spark, now, final_through)
        return self.aggregator.results(self.aggregator.keyed(included), constants)
