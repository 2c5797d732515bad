"""What waits for a person: gates that hold gold back, dead letters, the circuit breaker."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from headgate.declaration.kinds import GOLD
from headgate.flow.gates.documents import holds
from headgate.flow.publish.circuit_breaker import Breaker
from headgate.flow.publish.sinks.letters import dead_letters
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.samples import Samples


class GatesPart(Reading):
    name: ClassVar[str] = "gates"
    every: ClassVar[float] = 5.0

    def __init__(self, place: WatchedPipeline, tables: TablesPart) -> None:
        self._declared, self._layout, self._tables = place.declared, place.layout, tables
        self._breaker = Breaker(place.layout, place.declared)
        self._is_open: tuple[tuple[int, ...], bool] | None = None

    def read(self, samples: Samples, now: datetime) -> None:
        since: dict[str, datetime] = {}
        for hold in holds(self._layout, self._declared):
            since[hold.table] = min(hold.since, since.get(hold.table, hold.since))
        for name, gold in self._declared.gold.items():
            if gold.suite is not None:
                samples.add("gate_held", name in since, table=GOLD.path(name))
                samples.add("gate_held_timestamp_seconds", since.get(name), table=GOLD.path(name))
        for name, count in dead_letters(self._declared, self._layout).items():
            samples.add("publication_dead_letters", count, publication=name)
        if self._declared.publish and self._declared.circuit_breaker is not None:
            versions = self._tables.versions
            is_known = self._is_open is not None and self._is_open[0] == versions
            if self._is_open is None or not is_known or not self._tables.is_sound:
                self._is_open = versions, self._breaker.why_open() is not None
            samples.add("circuit_breaker_open", self._is_open[1])
