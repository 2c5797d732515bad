"""What the stage of a fold, its replays and its backfills compute with."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.declaration.model import GoldTable
from headgate.flow.gold.aggregator import Aggregator
from headgate.flow.gold.assignment import Assignment
from headgate.flow.gold.pairs import Pairs


@dataclass(frozen=True)
class GoldFold:
    """The fold of one gold table."""

    spark: SparkSession
    declared: GoldTable
    pairs: Pairs
    assignment: Assignment
    aggregator: Aggregator
