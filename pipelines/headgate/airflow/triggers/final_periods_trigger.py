"""Waits in the triggerer until hours or days of gold are due."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.airflow.triggers.plain_trigger import PollingTrigger
from headgate.errors import HeadgateError
from headgate.insight.final_periods.periods import PERIODS
from headgate.insight.final_periods.progress import Emitted, TableVersion
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.insight.final_periods.rows import FinalRows


@dataclass(eq=False, repr=False, kw_only=True)
class FinalPeriodsTrigger(PollingTrigger):
    """Fires ``{"due": names}`` once periods of some assets may be due. ``emitted`` has, for the
    name of each asset, the ``table``, the ``period`` and the ``progress`` with what was emitted
    (``airflow.operators.final_periods``). Checks every ``interval`` seconds; a check reads the
    state of each table, and no row. A table that cannot be read does not delay others. If none is
    due and a table is no longer declared, no name is in the event: the next run waits for the
    tables of the changed declaration."""

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
        from headgate.insight.final_periods.rows import FinalRows

        declared = load(self.file, needs_secrets=False)
        layout = Layout.of(self.root, declared.name)
        tables = defaultdict[str, dict[str, Any]](dict)
        for name, each in self.emitted.items():
            tables[each["table"]][name] = each
        found: list[str] = []
        for table in (each for each in tables if each in declared.gold):
            try:
                found += _maybe_due(tables[table], FinalRows(layout, declared, table))
            except (HeadgateError, OSError) as error:
                self.warn(table, error)
        return found if found or tables.keys() <= declared.gold.keys() else None


def _maybe_due(emitted: Mapping[str, Mapping[str, Any]], rows: FinalRows) -> list[str]:
    """The assets of a table of which a period may be due."""
    newest = rows.position()
    if newest is None:
        return []
    return [name for name, each in emitted.items() if _may_be_due(each, rows, newest)]


def _may_be_due(emitted: Mapping[str, Any], rows: FinalRows, newest: TableVersion) -> bool:
    if emitted["progress"] is None:
        return True
    progress, period = Emitted.decode(emitted["progress"]), PERIODS[emitted["period"]]
    if progress.may_be_due(newest, period):
        return True
    reached = progress.reached
    # Reading the id is slow, and only a table that is behind can have begun again.
    is_behind = reached is not None and reached.is_ahead_of(newest, period)
    return is_behind and progress.table != rows.id
