"""Triggers that are made of plain values."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent


class PlainTrigger(BaseTrigger):
    """Made again elsewhere from the keywords that it was made with."""

    SETTLES: ClassVar[float] = 10.0
    """Seconds from a deferral to the first event. The scheduler hears only after a while that the
    process which deferred has ended; if the task runs again by then, it takes that end for the end
    of the new process, calls the task failed and has it killed (apache/airflow#71580)."""

    def __init__(self, **kept: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = kept
        self._made = time.monotonic()

    async def settled(self) -> None:
        """Returns when an event may be sent."""
        await asyncio.sleep(max(0.0, self._made + self.SETTLES - time.monotonic()))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", self._kept


def event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
