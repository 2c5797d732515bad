"""Emits asset events for the final hours and days of gold, while the stream continues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowSkipException

from headgate.airflow.gold_table import asset_of
from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.triggers.final_periods_trigger import FinalPeriodsTrigger
from headgate.errors import HeadgateError
from headgate.insight.final_periods.periods import PERIODS, Period
from headgate.insight.final_periods.progress import Emitted, TableVersion

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

PROGRESS = "progress"  # in an event's extra
_PAGE = 50  # events at a time


class AwaitFinalPeriods(TablesTask):
    """Waits in the triggerer until an hour or a day of one of the ``tables`` may be due. Returns
    the names of their assets."""

    def __init__(
        self,
        *,
        tables: Sequence[str],
        interval: timedelta = timedelta(seconds=10),
        **kwargs: Any,
    ) -> None:
        self.tables = tuple(tables)
        self.interval = interval
        name = kwargs["name"]
        assets = [asset_of(name, table, period) for table, period in _each(tables)]
        super().__init__(inlets=assets, **kwargs)

    def execute(self, context: Context) -> list[str]:
        emitted = {}
        for table, period in _each(self.tables):
            asset = asset_of(self.name, table, period)
            progress = remembered(context, asset)
            known = progress.encode() if progress else None
            emitted[asset.name] = {"table": table, "period": period.name, PROGRESS: known}
        trigger = FinalPeriodsTrigger(
            file=self.file,
            root=self.root,
            emitted=emitted,
            interval=self.interval.total_seconds(),
        )
        with suppress(HeadgateError, OSError):  # the trigger reports them, and tries again
            if found := trigger.found():
                return found
        return self.defer(trigger=trigger, method_name="resume")

    def resume(self, context: Context, event: dict[str, list[str]]) -> list[str]:
        return event["due"]


class EmitFinalPeriods(TablesTask):
    """Emits an asset event of ``table`` for every ``period`` that is due: one that has become final
    and has a row, or that was final and of which a row has changed, for whatever reason. At most
    ``MOST`` at a time; the next run emits the others. Skipped if none is due.

    What was emitted is read from the asset's events, which Airflow writes in the transaction that
    ends this task. So each change is emitted once, also after crashes, and if Airflow's answer is
    lost and the report is sent again."""

    def __init__(self, *, table: str, period: str, waiting: str, **kwargs: Any) -> None:
        self.table, self.period, self.waiting = table, period, waiting
        asset = asset_of(kwargs["name"], table, PERIODS[period])
        super().__init__(inlets=[asset], outlets=[asset], **kwargs)

    def execute(self, context: Context) -> None:
        from headgate.insight.final_periods.rows import FinalRows

        period = PERIODS[self.period]
        asset = asset_of(self.name, self.table, period)
        nothing = AirflowSkipException(f"{self.table}: no {self.period} is due")
        if asset.name not in (context["ti"].xcom_pull(task_ids=self.waiting) or ()):
            raise nothing
        declared, layout = self._opened()
        rows = FinalRows(layout, declared, self.table)
        newest = rows.position()
        if newest is None:
            raise nothing
        before = remembered(context, asset)
        if before is None or before.table != rows.id:
            before = Emitted(before.number if before else 0, rows.id, None)
        # Not if the run is an old one that was cleared, or the table was restored meanwhile.
        if not before.may_be_due(newest, period):
            raise nothing
        upto = before.upto or newest
        starts, after = before.after(rows.due(period, before.done, upto), upto)
        if not starts:
            _remember(asset, after)
            raise nothing
        self.log.info("%s: %s", self.table, _summary(period, starts, before.done, after))
        outlet = context["outlet_events"][asset]
        outlet.add_partitions([period.key(start) for start in starts])
        outlet.extra = {PROGRESS: after.encode()}


def _each(tables: Sequence[str]) -> Iterator[tuple[str, Period]]:
    return ((table, period) for table in tables for period in PERIODS.values())


def _summary(
    period: Period, starts: Sequence[datetime], done: TableVersion | None, after: Emitted
) -> str:
    """What a report has, for the log."""
    began = period.whole(done.time) if done else starts[0]
    corrected = [period.key(start) for start in starts if start < began]
    final = [period.key(start) for start in starts if start >= began]
    parts = [("changed again", corrected), ("final now", final)]
    said = "; ".join(f"{what}: {', '.join(keys)}" for what, keys in parts if keys)
    return said if after.upto is None else f"{said}; more follow in the next run"


def remembered(context: Context, asset: Asset) -> Emitted | None:
    """The progress of an asset. It is kept in a variable of Airflow, for ``airflow db clean``
    removes old events. It is kept only once its events exist: a task that emits them may fail."""
    kept, found = Variable.get(_variable(asset), default=None), last_progress(context, asset)
    before = Emitted.decode(json.loads(kept)) if kept else None
    if found is None or (before is not None and found.number <= before.number):
        return before
    _remember(asset, found)
    return found


def _remember(asset: Asset, progress: Emitted) -> None:
    text = json.dumps(progress.encode())
    Variable.set(_variable(asset), text, "what was emitted for the asset")


def _variable(asset: Asset) -> str:
    return f"{asset.name}.emitted"


def last_progress(context: Context, asset: Asset) -> Emitted | None:
    """The progress in the newest events of `EmitFinalPeriods`; None if the asset has no such event.
    There may be any number of newer events, created by hand."""
    events = context["inlet_events"][asset].ascending(False)
    limit, before = _PAGE, None
    while True:
        page = list(events.limit(limit))
        written = [(one.extra or {}).get(PROGRESS) for one in page]
        if found := [Emitted.decode(each) for each in written if isinstance(each, dict)]:
            return max(found, key=lambda progress: progress.number)
        if len(page) < limit:
            return None
        oldest = page[-1].timestamp
        if oldest == before:
            limit *= 2  # the whole page has this timestamp: the next would be the same
        before = oldest
        events = events.before(oldest.isoformat())
