"""Follows a load to its end, reports its progress, and finds what blocks it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.cli.options import command
from headgate.commands import pipeline_command
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.flow.gates.documents import Hold
    from headgate.history.loads.requests import LoadRequest, LoadState
    from headgate.lake.storage.layout import Layout


def hindrance(layout: Layout, declared: Pipeline, id_: str) -> HeadgateError | None:
    """Why no driver continues an open load; None if nothing blocks it."""
    from headgate.history.loads.requests import all_loads, next_open_load
    from headgate.lake.control.driver_requests import paused_since

    again = f"\nthen: {command('load', '--resume', '--id', id_)}"
    if (since := paused_since(layout)) is not None:
        return HeadgateError(
            f"the load {id_} waits: {declared.name} is PAUSED since {since:%F %T}Z",
            remedy=f"{command('resume')}{again}",
            code=exit_codes.PAUSED,
        )
    # One load is carried out at a time: an older one may block this one.
    current = next_open_load(all_loads(layout, declared.name))
    if current is not None and (hold := _hold(layout, declared, current)) is not None:
        return HeadgateError(
            f"the load {id_} waits: {hold.title} is held by its rules",
            remedy=f"see why: {pipeline_command('gate status')}{again}",
            code=exit_codes.HELD,
        )
    return None


def _hold(layout: Layout, declared: Pipeline, request: LoadRequest) -> Hold | None:
    """The hold of a gold table that has not processed a load which bronze has read, or not carried
    out its replays; None if there is none."""
    from headgate.declaration.kinds import BRONZE
    from headgate.flow.gates.documents import tables_held
    from headgate.history.loads.replay_planner import ReplayPlanner
    from headgate.lake.tables.payloads.bronze import BronzePayload
    from headgate.lake.tables.table import Table

    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=declared.name)
    load = BronzePayload.of(bronze.refresh()).load(request.id)
    if load is None or not request.is_read(load):
        return None
    behind = ReplayPlanner(layout, declared, request).behind(load)
    held = tables_held(layout, declared)
    return next((hold for table, hold in held.items() if table in behind), None)


_POLL = 0.5  # seconds
_LINES_EVERY = 5.0  # seconds, if stderr is not a terminal
_BAR = 20
_ALONE = 15.0
"""Seconds without a driver after which NobodyLoadsError is raised."""


class NobodyLoadsError(HeadgateError):
    """No driver carries the load out."""


def progress_in_words(state: LoadState, ends: datetime | None = None) -> str:
    """A line with a progress bar, and the time at which all will be read."""
    filled = _BAR * state.read // max(state.total, 1)
    bar = "#" * filled + "." * (_BAR - filled)
    words = (
        f"[{bar}] {state.read:,} of {state.total:,} {state.unit}, {plural(state.rows, 'record')}"
    )
    if state.state == "folding":
        return f"{words}, folding late rows into final ones"
    return words if ends is None else f"{words}, read by about {ends:%F %T}Z"


class Speed:
    """When all will be read, at the speed from the first call to the end of the last step: while a
    step runs, nothing is known of it."""

    def __init__(self) -> None:
        self._begun: tuple[datetime, int] | None = None
        self._reached: tuple[datetime, int] | None = None

    def expected_end(self, now: datetime, read: int, total: int) -> datetime | None:
        """``read`` of ``total`` are read. None if it is not known, or was expected earlier."""
        begun = self._begun = self._begun or (now, read)
        if self._reached is None or read != self._reached[1]:
            self._reached = now, read
        at, done = self._reached[0], read - begun[1]
        if done <= 0:
            return None
        ends = at + (at - begun[0]) * ((total - read) / done)
        return ends if ends > now else None


def follow(
    layout: Layout,
    declared: Pipeline,
    id_: str,
    say: Callable[[str], None],
    is_over: Callable[[], bool] = lambda: False,
) -> LoadState:
    """Report the progress of a load until it is no longer open, or ``is_over``. Raises
    NobodyLoadsError if no driver carries it out."""
    from headgate.history.loads.requests import find_load, load_state

    speed = Speed()
    said, seen = -_LINES_EVERY, time.monotonic()
    while True:
        request = find_load(layout, declared.name, id_)
        if request is None:
            raise NobodyLoadsError(f"the load {id_} is gone", remedy=command("load"))
        state, now = load_state(layout, declared.name, request), time.monotonic()
        if not state.is_open or is_over():
            return state
        ends = speed.expected_end(datetime.now(UTC), state.read, state.total)
        if sys.stderr.isatty() or now - said >= _LINES_EVERY:
            said = now
            hindered = hindrance(layout, declared, id_)
            say(progress_in_words(state, ends) + (f"; {hindered.message}" if hindered else ""))
        if _is_driven(layout, declared):
            seen = now
        elif now - seen > _ALONE:
            raise NobodyLoadsError(
                f"no driver carries the load {id_} out any more; nothing of it is lost",
                remedy=pipeline_command("load", "--resume"),
            )
        time.sleep(_POLL)


def require_done(state: LoadState) -> None:
    """Raises HeadgateError for a load that an error has stopped."""
    if state.state == "stopped":
        raise HeadgateError(
            f"the load {state.id} is stopped after {plural(state.rows, 'record')}: {state.why}",
            remedy=f"correct it, then: {command('load', '--resume')}\n"
            f"or end it, and what it has read stays: {command('load', '--cancel')}",
            code=exit_codes.SOURCE,
        )


def _is_driven(layout: Layout, declared: Pipeline) -> bool:
    """Whether a driver of bronze holds its lease."""
    from headgate.driver.lease import Lease, LeaseHeldError

    try:
        Lease(layout, ("bronze",), declared.name).require_free(datetime.now(UTC))
    except LeaseHeldError:
        return True
    return False
