"""Waits in the triggerer for a final hour of gold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from airflow.triggers.base import TriggerEvent

from headgate.airflow.error_text import error_text
from headgate.airflow.triggers.plain_trigger import PlainTrigger, event
from headgate.commands import anywhere
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.supervision import hours


class FinalHoursTrigger(PlainTrigger):
    """Fires once a table has a final hour after its ``emitted`` time. The event has, for each such
    table, the end of its last final hour in ISO 8601. Checks every ``interval`` seconds. A table
    that cannot be read does not delay others. If no table has one and a table is no longer
    declared, the event is empty: the next run waits for the tables of the changed declaration."""

    RENEWS: ClassVar[float] = 60.0
    """Seconds until an empty event. Airflow reads DAG files about every 30 seconds; a run that
    starts before Airflow has read the change would have the same tables."""

    def __init__(
        self, *, file: str, root: str, emitted: Mapping[str, str | None], interval: float
    ) -> None:
        super().__init__(file=file, root=root, emitted=dict(emitted), interval=interval)
        self._file, self._root = file, root
        self._place = anywhere(Path(file), root)
        self._emitted = {
            table: datetime.fromisoformat(last) if last else None for table, last in emitted.items()
        }
        self._interval = interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                found = await asyncio.to_thread(self.news)
                if found or (found is None and time.monotonic() - self._made >= self.RENEWS):
                    await self.settled()
                    yield event(dict(found or {}))
                    return
            except (HeadgateError, OSError) as error:
                text = error_text(error, self._place)
                self.log.warning("cannot read how far gold is final: %s", text)
            await asyncio.sleep(self._interval)

    def news(self) -> Mapping[str, str] | None:
        """The end of the last final hour of each table that has a new one. None if no table has one
        and a table is no longer declared. Raises HeadgateError if the declaration is wrong."""
        from headgate.declaration.load import load
        from headgate.supervision.finality import final_up_to

        declared = load(self._file, needs_secrets=False)
        layout = Layout.of(self._root, declared.name)
        found = {}
        for table, last in self._emitted.items():
            if table not in declared.gold:
                continue
            try:
                reached = final_up_to(layout, declared, table)
            except (HeadgateError, OSError) as error:
                text = error_text(error, self._place)
                self.log.warning("cannot read how far %s is final: %s", table, text)
                continue
            if reached is not None and (last is None or hours.whole(reached) > last):
                found[table] = hours.whole(reached).isoformat()
        return found if found or self._emitted.keys() <= declared.gold.keys() else None
