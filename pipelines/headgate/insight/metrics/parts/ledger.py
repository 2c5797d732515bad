"""The ledger: what was read, and what is accounted for."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from headgate.declaration.kinds import SILVER
from headgate.insight.ledger import Ledger, balance, deployed
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.samples import Samples


class LedgerPart(Reading):
    """Balances again if a table has a new version. Reads only metadata, like ``headgate ledger``.
    Tables that are not deployed yet are left out."""

    name: ClassVar[str] = "ledger"
    every: ClassVar[float] = 30.0

    def __init__(self, place: WatchedPipeline, tables: TablesPart) -> None:
        self._place, self._tables = place, tables
        self._known: tuple[tuple[int, ...], Ledger] | None = None

    def read(self, samples: Samples, now: datetime) -> None:
        versions, declared = self._tables.versions, self._place.declared
        if -1 in versions:
            declared = deployed(self._place.layout, declared)
            if any(self._tables.version(path) is None for path in declared.definitions):
                return  # the pipeline has never run, or its first driver is creating tables
        if self._known is None or self._known[0] != versions or not self._tables.is_sound:
            self._known = versions, balance(self._place.layout, declared)
        ledger = self._known[1]
        samples.add("ledger_differences", len(ledger.differences))
        for silver in ledger.silver:
            table, accounted = SILVER.path(silver.table), silver.accounted
            samples.add("ledger_read_records", silver.read, table=table)
            samples.add("ledger_accounted_records", accounted, table=table)
            samples.add("ledger_difference_records", silver.read - accounted, table=table)
