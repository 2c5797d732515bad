"""Waits in the triggerer for a final hour of gold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from headgate.airflow.triggers.plain_trigger import PollingTrigger
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.supervision import hours


@dataclass(eq=False, repr=False, kw_only=True)
class FinalHoursTrigger(PollingTrigger):
    """Fires once a table has a final hour after its ``emitted`` time. The event has, for each such
    table, the end of its last final hour in ISO 8601. Checks every ``interval`` seconds. A table
    that cannot be read does not delay others. If no table has one and a table is no longer
    declared, the event is empty: the next run waits for the tables of the changed declaration."""

    RENEWS: ClassVar[float] = 60.0
    """Seconds until an empty event. Airflow reads DAG files about every 30 seconds; a run that
    starts before Airflow has read the change would have the same tables."""

    emitted: Mapping[str, str | None]

    def payload(self) -> dict[str, str] | None:
        found = self.news()
        if found is None and time.monotonic() - self._made >= self.RENEWS:
            return {}
        return found or None

    def news(self) -> dict[str, str] | None:
        """The end of the last final hour of each table that has a new one. None if no table has one
        and a table is no longer declared. Raises HeadgateError if the declaration is wrong."""
        from headgate.declaration.load import load
        from headgate.supervision.finality import final_up_to

        declared = load(self.file, needs_secrets=False)
        layout = Layout.of(self.root, declared.name)
        found = {}
        for table, last in self.emitted.items():
            if table not in declared.gold:
                continue
            try:
                reached = final_up_to(layout, declared, table)
            except (HeadgateError, OSError) as error:
                self.warn(table, error)
                continue
            hour = reached and hours.whole(reached)
            if hour and (last is None or hour > datetime.fromisoformat(last)):
                found[table] = hour.isoformat()
        return found if found or self.emitted.keys() <= declared.gold.keys() else None
