"""Waits in the triggerer until hours or days of gold are due."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headgate.airflow.triggers.plain_trigger import PollingTrigger
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.supervision.final_progress import Position
from headgate.supervision.periods import PERIODS


@dataclass(eq=False, repr=False, kw_only=True)
class FinalPeriodsTrigger(PollingTrigger):
    """Fires ``{"due": names}`` once periods of some assets may be due. ``emitted`` has, for the
    name of each asset, the ``table``, the ``period`` and the ``progress`` with what was emitted
    (``operators.final_periods``). Checks every ``interval`` seconds; a check reads the state of
    each table, and no row. A table that cannot be read does not delay others. If none is due and a
    table is no longer declared, no name is in the event: the next run waits for the tables of the
    changed declaration."""

    RENEWS: ClassVar[float] = 60.0
    """Seconds until an event without names. Airflow reads DAG files about every 30 seconds; a run
    that starts before Airflow has read the change would have the same tables."""

    emitted: Mapping[str, Mapping[str, Any]]

    def payload(self) -> dict[str, list[str]] | None:
        found = self.found()
        if found is None and time.monotonic() - self._made >= self.RENEWS:
            return {"due": []}
        return {"due": found} if found else None

    def found(self) -> list[str] | None:
        """The assets of which a period may be due. None if there is none and a table is no longer
        declared. Raises HeadgateError if the declaration is wrong."""
        from headgate.declaration.load import load
        from headgate.supervision.final_rows import FinalRows

        declared = load(self.file, needs_secrets=False)
        layout = Layout.of(self.root, declared.name)
        positions: dict[str, Position] = {}
        for table in {each["table"] for each in self.emitted.values()} & declared.gold.keys():
            try:
                position = FinalRows(layout, declared, table).position()
            except (HeadgateError, OSError) as error:
                self.warn(table, error)
                continue
            if position is not None:
                positions[table] = position
        found = [
            name
            for name, each in self.emitted.items()
            if each["table"] in positions and _may_be_due(each, positions[each["table"]])
        ]
        is_declared = all(each["table"] in declared.gold for each in self.emitted.values())
        return found if found or is_declared else None


def _may_be_due(emitted: Mapping[str, Any], newest: Position) -> bool:
    progress = emitted["progress"]
    if progress is None or progress["done"] is None or progress["upto"] is not None:
        return True
    done = Position.decode(progress["done"])
    return done.may_differ(newest, PERIODS[emitted["period"]])
