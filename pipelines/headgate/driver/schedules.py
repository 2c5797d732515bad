"""What a running pipeline does on a schedule: savepoints, and replays of late rows.

Both run in bronze's job. Nothing waits for them, and a failure does not end the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow.dataset as ds

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD, LATE
from headgate.declaration.model import GoldTable, LateSchedule, Pipeline, SavepointSchedule
from headgate.declaration.names import REPLAYED
from headgate.errors import HeadgateError, joined_messages
from headgate.flow.operations.late_replay import replay_document
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint, prune_savepoints, savepoints
from headgate.lake.control.requests import send_request, waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.frames import micros
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time, time_of
from headgate.lake.tables.table import Table

NOTE = "scheduled"
AGAIN_AFTER = timedelta(minutes=1)
"""The delay after which a failed savepoint is tried again, unless its interval is shorter."""
CHECK_EVERY = timedelta(minutes=1)
_BY = "schedule"


class ScheduledSavepoints:
    """Takes the savepoints of a pipeline, and deletes old ones."""

    def __init__(self, layout: Layout, pipeline: Pipeline) -> None:
        self._layout = layout
        self._pipeline = pipeline
        self.trouble: str | None = None
        self._due: datetime | None = None

    def run_due(self, now: datetime) -> Savepoint | None:
        """Take a savepoint if one is due, and delete those that need not be kept."""
        schedule = self._pipeline.savepoints
        if schedule is None:
            return None
        self._due = self._due or self._first(schedule, now)
        # A later due time was computed before the clock was set back, and is ignored.
        if now < self._due <= now + schedule.every:
            return None
        self._due = now + min(schedule.every, AGAIN_AFTER)
        try:
            taken = create_savepoint(self._layout, self._pipeline, now, NOTE)
            self._due = now + schedule.every
            self._prune(schedule, now)
        except (HeadgateError, OSError) as error:
            self.trouble = f"no savepoint at {now:%F %T}Z: {error}"
            return None
        self.trouble = None
        return taken

    def _first(self, schedule: SavepointSchedule, now: datetime) -> datetime:
        """When the first savepoint of this driver is due, after those of earlier drivers.
        Savepoints of the future come from a clock that was ahead, and are ignored."""
        try:
            found = (s for s in savepoints(self._layout) if isinstance(s, Savepoint))
            taken = [s.created for s in found if s.created <= now]
        except (HeadgateError, OSError):
            return now  # taking a savepoint reports the same error
        return max(taken) + schedule.every if taken else now

    def _prune(self, schedule: SavepointSchedule, now: datetime) -> None:
        keep, keep_for = schedule.keep, schedule.keep_for
        prune_savepoints(self._layout, self._pipeline, now, keep=keep, keep_for=keep_for)


Documents = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class _Scheduled:
    """A gold table with a schedule, and readers of it and of its late table."""

    declared: GoldTable
    schedule: LateSchedule
    gold: Table
    late: Table


class ScheduledLateReplays:
    """Requests the replays of late rows of each gold table with a schedule."""

    def __init__(self, layout: Layout, pipeline: Pipeline) -> None:
        table = partial(Table, layout.storage, pipeline=pipeline.name)
        self._layout = layout
        self._graph, self._control = (
            graph_of(pipeline),
            ControlTable.of(layout.storage, pipeline.name),
        )
        self._scheduled = [
            _Scheduled(each, each.late, table(GOLD.path(name)), table(LATE.path(name)))
            for name, each in pipeline.gold.items()
            if each.late is not None
        ]
        self._next: datetime | None = None
        self.trouble: str | None = None

    def run_due(self, now: datetime) -> None:
        """Request the replays that are due."""
        # A next time that is further away comes from a clock that was ahead.
        is_early = self._next is not None and now < self._next <= now + CHECK_EVERY
        if not self._scheduled or is_early:
            return
        self._next = now + CHECK_EVERY
        troubles = list[str]()
        for each in self._scheduled:
            try:
                self._ask(each, now)
            except (HeadgateError, OSError) as error:
                troubles.append(f"no replay of late rows at {now:%F %T}Z: {error}")
        self.trouble = joined_messages(troubles)

    def _ask(self, table: _Scheduled, now: datetime) -> None:
        source = self._graph.numbered_by(GOLD.path(table.declared.name)).name
        asked = self._control.refresh().operations_of(source)
        gold = table.gold.refresh()
        done = [each.document for each in asked if each.number <= gold.operation]
        open_ = [each.document for each in asked if each.number > gold.operation]
        open_ += [request.document for request in waiting_requests(self._layout)]
        if not is_replay_due(table.declared.name, table.schedule, done, open_, now):
            return
        watermark = GoldPayload.of(gold).watermark
        if watermark is None:
            return
        begin = watermark - micros(table.schedule.within)
        if not _waits(table.late, begin):
            return
        document = replay_document(table.declared.name, begin, by=_BY, at=commit_time(now))
        send_request(self._layout, "late_replay", document, now)


def is_replay_due(
    name: str, schedule: LateSchedule, done: Documents, open_: Documents, now: datetime
) -> bool:
    """Whether a table's next replay is due. It is not while another one is ``open_``, for example
    because a gate holds the table. ``done`` and ``open_`` are documents of operations. A scheduled
    one has the time of its request (``at``, microseconds since 1970 UTC). A time in the future
    comes from a clock that was ahead, and is ignored."""
    if any(_is_of(document, name) for document in open_):
        return False
    own = (document for document in done if _is_of(document, name))
    taken = [at for document in own if (at := time_of(document["at"])) <= now]
    return not taken or now - max(taken) >= schedule.replay_every


def _is_of(document: Mapping[str, Any], table: str) -> bool:
    """Whether a document is that of a scheduled replay of a table."""
    return document.get("by") == _BY and document.get("table") == table


def _waits(late: Table, begin: int) -> bool:
    """Whether a late row with an event time at or after ``begin`` was not replayed yet."""
    late.refresh()
    is_meant = ds.field(REPLAYED).is_null() & (ds.field("_event_time") >= time_of(begin))
    return bool(late.handle.to_pyarrow_dataset().head(1, filter=is_meant).num_rows)
