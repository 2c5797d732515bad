"""Waits until a gold table is final up to a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.run_conf import require_interval
from headgate.airflow.triggers.gold_final_trigger import GoldFinalTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class GoldFinalSensor(TablesTask):
    """Succeeds once every window of ``table`` that ends at ``up_to`` or before is final: later
    events do not change the rows that a downstream task reads of them. It holds no worker while it
    waits.

    :param table: a gold table of the pipeline that ``file`` declares, without ``gold.``.
    :param up_to: a time with its zone, in ISO 8601: mostly ``{{ data_interval_end }}``.
    :param timeout: the task fails after this time; without it, the task waits without limit.
    """

    template_fields: Sequence[str] = ("table", "up_to")

    def __init__(
        self,
        *,
        table: str,
        up_to: str,
        interval: timedelta = timedelta(seconds=10),
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.up_to = up_to
        self.interval = interval
        self.timeout = timeout

    def execute(self, context: Context) -> None:
        require_interval(self.dag_id, self.up_to)
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
