"""Silver and gold stages over one bronze table, and how they move forward together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import GoldTable, SilverTable, Source
from headgate.failpoints import failpoint
from headgate.operators.contract import GoldStage, stage_of
from headgate.silver.stage import SilverStage
from headgate.tables.table import Table, TableOf


class Stages:
    """The stages of some tables, all of one source. ``table`` gives the tables that they write."""

    def __init__(
        self,
        spark: SparkSession,
        table: TableOf,
        source: Source,
        silver: Iterable[SilverTable],
        gold: Iterable[GoldTable],
    ) -> None:
        self.bronze = table(BRONZE.path(source.name)).reader()
        self.silver = SilverStage(spark, table, source, tuple(silver))
        self.gold: Mapping[str, GoldStage] = {g.name: stage_of(spark, table, g) for g in gold}

    def catch_up(
        self,
        layers: Collection[str],
        now: datetime,
        most_steps: int | None,
        awaits: Callable[[Table], bool],
    ) -> bool:
        """Bring the tables of ``layers`` to where the table above them is, and carry out the
        operations on the way. Returns whether they all are. ``awaits`` says whether a table has a
        reset to carry out: nothing may be built on it.

        Raises CommitRefusedError, FencedError or LogGapError.
        """
        level = True
        bronze = self.bronze.refresh()
        if "silver" in layers:
            # No step of silver passes an operation: gold stops there.
            stops = (*(n for _, n in bronze.drains), bronze.n)
            self.silver.catch_up(stops, now, most_steps)
            level = self.silver.has_absorbed(bronze.n)
        if "gold" in layers:
            for gold in self.gold.values():
                if awaits(gold.silver) or awaits(gold.gold):
                    level = False
                else:
                    level &= self._catch_up_gold(gold, now, most_steps)
        return level

    def _catch_up_gold(self, gold: GoldStage, now: datetime, most_steps: int | None) -> bool:
        held, silver = gold.gold.refresh(), gold.silver.refresh()
        # Bronze after silver: an operation that silver has passed is never overlooked.
        for number, n in self.bronze.refresh().drains:
            if number <= held.operation:
                continue
            gold.catch_up(min(n, silver.n), now, most_steps)
            if gold.gold.refresh().n < n:
                return False
            gold.drain(number, now)
            failpoint("operation.table_done")
        gold.catch_up(silver.n, now, most_steps)
        return gold.gold.refresh().n >= silver.n
