"""The base of triggers with plain values as arguments."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent


class PlainTrigger(BaseTrigger):
    """Serialized by its keyword arguments."""

    SETTLES: ClassVar[float] = 10.0
    """Seconds from a deferral to the first event. The scheduler learns late that the deferring
    process has ended. If the task runs again by then, the scheduler takes that end for the end of
    the new process, marks the task failed and kills it (apache/airflow#71580)."""

    def __init__(self, **kept: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = kept
        self._made = time.monotonic()

    async def settled(self) -> None:
        """Wait until an event may be sent."""
        await asyncio.sleep(max(0.0, self._made + self.SETTLES - time.monotonic()))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", self._kept


def event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
