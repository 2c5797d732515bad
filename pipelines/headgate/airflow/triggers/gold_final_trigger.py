"""Waits in the triggerer until a gold table is final up to a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from airflow.triggers.base import TriggerEvent

from headgate.airflow.error_text import error_text
from headgate.airflow.triggers.plain_trigger import PlainTrigger, event
from headgate.commands import anywhere
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout


class GoldFinalTrigger(PlainTrigger):
    """Fires ``{"final_up_to": time}`` once; checks every ``interval`` seconds. Raises HeadgateError
    if ``up_to`` is not a time with a zone."""

    def __init__(self, *, file: str, root: str, table: str, up_to: str, interval: float) -> None:
        super().__init__(file=file, root=root, table=table, up_to=up_to, interval=interval)
        self._file, self._root, self._table = file, root, table
        self._place = anywhere(Path(file), root)
        self._up_to = _time(up_to)
        self._interval = interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                if await asyncio.to_thread(self.is_final):
                    await self.settled()
                    yield event({"final_up_to": self._up_to.isoformat()})
                    return
            except (HeadgateError, OSError) as error:
                text = error_text(error, self._place)
                self.log.warning("cannot read how far %s is final: %s", self._table, text)
            await asyncio.sleep(self._interval)

    def is_final(self) -> bool:
        """Whether the table is final up to the time. Raises HeadgateError if there is no such
        table, or its log is damaged."""
        from headgate.declaration.load import load
        from headgate.supervision.finality import final_up_to

        declared = load(self._file, needs_secrets=False)
        reached = final_up_to(Layout.of(self._root, declared.name), declared, self._table)
        return reached is not None and reached >= self._up_to


def _time(text: str) -> datetime:
    remedy = 'give a time with its zone: up_to="{{ data_interval_end }}"'
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise HeadgateError(f"up_to is not a time: {text!r}", remedy) from error
    if time.tzinfo is None:
        raise HeadgateError(f"up_to has no zone: {text!r}", remedy)
    return time
