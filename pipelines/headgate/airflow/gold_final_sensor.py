"""Waits until a gold table is final up to a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.triggers.base import TriggerEvent

from headgate.airflow.plain_trigger import PlainTrigger, event
from headgate.spec.errors import HeadgateError
from headgate.spec.load import load
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from airflow.sdk import Context


class GoldFinalSensor(BaseOperator):
    """Succeeds once every window of ``table`` that ends at ``up_to`` or before is final: what a
    downstream task reads of them never changes again. No worker is held meanwhile.

    :param table: a gold table of the pipeline that ``file`` declares, without ``gold.``.
    :param up_to: a time with its zone, in ISO 8601: mostly ``{{ data_interval_end }}``.
    :param timeout: after so long the task fails; it waits for ever without.
    """

    template_fields: Sequence[str] = ("table", "up_to")

    def __init__(
        self,
        *,
        file: str,
        root: str,
        table: str,
        up_to: str,
        interval: timedelta = timedelta(seconds=10),
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.file = file
        self.root = root
        self.table = table
        self.up_to = up_to
        self.interval = interval
        self.timeout = timeout

    def execute(self, context: Context) -> None:
        trigger = GoldFinalTrigger(
            file=self.file,
            root=self.root,
            table=self.table,
            up_to=self.up_to,
            interval=self.interval.total_seconds(),
        )
        if not trigger.is_final():
            self.defer(trigger=trigger, method_name="done", timeout=self.timeout)

    def done(self, context: Context, event: dict[str, str]) -> None:
        self.log.info("%s is final up to %s", self.table, event["final_up_to"])


class GoldFinalTrigger(PlainTrigger):
    """Fires ``{"final_up_to": time}`` once; looks every ``interval`` seconds. Raises HeadgateError
    for an ``up_to`` that is no time with a zone."""

    def __init__(self, *, file: str, root: str, table: str, up_to: str, interval: float) -> None:
        super().__init__(file=file, root=root, table=table, up_to=up_to, interval=interval)
        self._file, self._root, self._table = file, root, table
        self._up_to = _time(up_to)
        self._interval = interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                if await asyncio.to_thread(self.is_final):
                    yield event({"final_up_to": self._up_to.isoformat()})
                    return
            except (HeadgateError, OSError) as error:
                self.log.warning("cannot tell how far %s is: %s", self._table, error)
            await asyncio.sleep(self._interval)

    def is_final(self) -> bool:
        """Raises HeadgateError where there is no such table, or its log is damaged."""
        from headgate.supervision.finality import final_up_to

        declared = load(self._file)
        reached = final_up_to(Layout.of(self._root, declared.name), declared, self._table)
        return reached is not None and reached >= self._up_to


def _time(text: str) -> datetime:
    remedy = 'give a time with its zone: up_to="{{ data_interval_end }}"'
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise HeadgateError(f"up_to is no time: {text!r}", remedy) from error
    if time.tzinfo is None:
        raise HeadgateError(f"up_to has no zone: {text!r}", remedy)
    return time
