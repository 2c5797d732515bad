"""The bases of triggers with plain values as fields."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from headgate.airflow.error_text import error_text
from headgate.commands import anywhere
from headgate.errors import HeadgateError


@dataclass(eq=False, repr=False, kw_only=True)
class PlainTrigger(BaseTrigger):
    """Serialized by its fields."""

    SETTLES: ClassVar[float] = 10.0
    """Seconds from a deferral to the first event. The scheduler learns late that the deferring
    process has ended. If the task runs again by then, the scheduler takes that end for the end of
    the new process, marks the task failed and kills it (apache/airflow#71580)."""

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._made = time.monotonic()

    async def settled(self) -> None:
        """Wait until an event may be sent."""
        await asyncio.sleep(max(0.0, self._made + self.SETTLES - time.monotonic()))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return f"{type(self).__module__}.{type(self).__qualname__}", kept


@dataclass(eq=False, repr=False, kw_only=True)
class PollingTrigger(PlainTrigger):
    """Fires once; looks every ``interval`` seconds how far gold is final."""

    file: str
    root: str
    interval: float

    @abstractmethod
    def payload(self) -> dict[str, Any] | None:
        """That of the event; None to look again. Raises HeadgateError or OSError, which are
        logged."""

    @property
    def about(self) -> str:
        return "gold"

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                if (found := await asyncio.to_thread(self.payload)) is not None:
                    await self.settled()
                    yield event(found)
                    return
            except (HeadgateError, OSError) as error:
                self.warn(self.about, error)
            await asyncio.sleep(self.interval)

    def warn(self, what: str, error: Exception) -> None:
        text = error_text(error, anywhere(Path(self.file), self.root))
        self.log.warning("cannot read how far %s is final: %s", what, text)


def event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
