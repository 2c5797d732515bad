"""Silver and gold stages over one bronze table, and how they catch up together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import GoldTable, SilverTable, Source
from headgate.graph.graph import Graph
from headgate.operations.carrying_out import Operations
from headgate.operators.contract import GoldStage, stage_of
from headgate.silver.stage import SilverStage
from headgate.tables.table import TableOf


class Stages:
    """The stages of some tables of one source. ``table`` returns the table of a path, ``graph``
    contains all declared tables."""

    def __init__(
        self,
        spark: SparkSession,
        table: TableOf,
        graph: Graph,
        source: Source,
        silver: Iterable[SilverTable],
        gold: Iterable[GoldTable],
    ) -> None:
        self._graph = graph
        self.bronze = table(BRONZE.path(source.name)).reader()
        self.silver = SilverStage(spark, table, source, tuple(silver))
        self.gold: Mapping[str, GoldStage] = {g.name: stage_of(spark, table, g) for g in gold}

    def catch_up(
        self,
        layers: Collection[str],
        now: datetime,
        most_steps: int | None,
        waits_for: Collection[str],
    ) -> bool:
        """Bring the tables of ``layers`` up to their upstream tables, and carry out the operations
        on the way. Returns whether all tables are up to date. ``waits_for`` are tables that other
        jobs have not reset yet: nothing is built on them.

        Raises CommitRefusedError, FencedError, LogGapError or UnknownOperationError.
        """
        level = True
        if "silver" in layers:
            n = self.bronze.refresh().n
            self.silver.catch_up(n, self._operations(), now, most_steps)
            level = self.silver.has_absorbed(n)
        if "gold" in layers:
            for gold in self.gold.values():
                if gold.silver.name in waits_for:
                    level = False
                else:
                    level &= self._catch_up_gold(gold, now, most_steps)
        return level

    def _catch_up_gold(self, gold: GoldStage, now: datetime, most_steps: int | None) -> bool:
        upto = gold.silver.refresh().n
        # Read bronze after silver, so that no operation that silver has carried out is missed.
        self.bronze.refresh()
        operations = self._operations().of(place.table for place in gold.places)
        for stop in operations.stops(upto):
            gold.catch_up(stop, now, most_steps)
            if (n := gold.gold.refresh().n) < stop:
                return False
            operations.carry_out(gold.places, n, now)
        return True

    def _operations(self) -> Operations:
        """The operations as of the last refresh of bronze."""
        return Operations(self.bronze.state.operations, self._graph)
