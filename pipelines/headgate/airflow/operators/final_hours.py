"""Emits asset events for the final hours of gold, while the stream continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowSkipException

from headgate.airflow.gold_table import gold_asset
from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.triggers.final_hours_trigger import FinalHoursTrigger
from headgate.supervision import hours

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

FINAL_UP_TO = "final_up_to"  # in an event's extra
_PAGE = 50  # events at a time


class AwaitFinalHours(TablesTask):
    """Waits in the triggerer until one of the ``tables`` has a final hour without an asset event.
    Returns, for each such table, the ISO time up to which it is final."""

    def __init__(
        self,
        *,
        tables: Sequence[str],
        interval: timedelta = timedelta(seconds=10),
        **kwargs: Any,
    ) -> None:
        self.tables = tuple(tables)
        self.interval = interval
        assets = [gold_asset(kwargs["name"], table) for table in tables]
        super().__init__(inlets=assets, **kwargs)

    def execute(self, context: Context) -> None:
        emitted = {
            table: remembered(context, gold_asset(self.name, table)) for table in self.tables
        }
        self.defer(
            trigger=FinalHoursTrigger(
                file=self.file,
                root=self.root,
                emitted={
                    table: last.isoformat() if last else None for table, last in emitted.items()
                },
                interval=self.interval.total_seconds(),
            ),
            method_name="resume",
        )

    def resume(self, context: Context, event: dict[str, str]) -> dict[str, str]:
        return event


class EmitFinalHours(TablesTask):
    """Emits an asset event of ``table`` for every hour that the task ``waiting`` found final and
    that has none yet; skipped if there is none. Earlier events are read from the asset itself, so
    each hour is emitted once, also after crashes, and after old events were removed."""

    def __init__(self, *, table: str, waiting: str, **kwargs: Any) -> None:
        self.table = table
        self.waiting = waiting
        asset = gold_asset(kwargs["name"], table)
        super().__init__(inlets=[asset], outlets=[asset], **kwargs)

    def execute(self, context: Context) -> None:
        found: Mapping[str, str] = context["ti"].xcom_pull(task_ids=self.waiting) or {}
        asset = gold_asset(self.name, self.table)
        until = found.get(self.table)
        keys = (
            hours.between(remembered(context, asset), datetime.fromisoformat(until))
            if until
            else []
        )
        if not keys:
            raise AirflowSkipException(f"{self.table}: no further hour is final")
        self.log.info("%s: final now: %s", self.table, ", ".join(keys))
        outlet = context["outlet_events"][asset]
        outlet.add_partitions(list(keys))
        outlet.extra = {FINAL_UP_TO: until}


def remembered(context: Context, asset: Asset) -> datetime | None:
    """``last_emitted``. It is kept in a variable of Airflow, for ``airflow db clean`` removes old
    events. A time is kept only once its events exist: a task that emits them may fail."""
    key = f"{asset.name}.{FINAL_UP_TO}"
    kept, found = Variable.get(key, default=None), last_emitted(context, asset)
    before = datetime.fromisoformat(kept) if kept else None
    if found is None or (before is not None and found <= before):
        return before
    Variable.set(key, found.isoformat(), "its hours were emitted up to this time")
    return found


def last_emitted(context: Context, asset: Asset) -> datetime | None:
    """The time up to which the hours of an asset have events of `EmitFinalHours`; None if it has no
    such event. There may be any number of newer events, created by hand or for rebuilt hours."""
    events = context["inlet_events"][asset].ascending(False)
    limit, before = _PAGE, None
    while True:
        page = list(events.limit(limit))
        emitted = [(one.extra or {}).get(FINAL_UP_TO) for one in page]
        times = [datetime.fromisoformat(str(time)) for time in emitted if time]
        if times or len(page) < limit:
            return max(times, default=None)
        oldest = page[-1].timestamp
        if oldest == before:
            limit *= 2  # the whole page has this timestamp: the next would be the same
        before = oldest
        events = events.before(oldest.isoformat())
