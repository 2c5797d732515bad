"""Finds what blocks an open load although a driver runs. Only a person can remove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.cli.options import command
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.gates.documents import Hold
    from headgate.loads.requests import LoadRequest
    from headgate.storage.layout import Layout


def hindrance(layout: Layout, declared: Pipeline, id_: str) -> HeadgateError | None:
    """Why no driver continues an open load; None if nothing blocks it."""
    from headgate.loads.requests import all_of, next_open
    from headgate.storage.pausing import paused_since

    again = f"\nthen: {command('load', '--resume', '--id', id_)}"
    if (since := paused_since(layout)) is not None:
        return HeadgateError(
            f"the load {id_} waits: {declared.name} is PAUSED since {since:%F %T}Z",
            remedy=f"{command('resume')}{again}",
            code=exit_codes.PAUSED,
        )
    # One load is carried out at a time: an older one may block this one.
    current = next_open(all_of(layout))
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
    from headgate.gates.documents import holds
    from headgate.loads.replay_planner import ReplayPlanner
    from headgate.tables.payloads.bronze import BronzePayload
    from headgate.tables.table import Table

    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=declared.name)
    load = BronzePayload.of(bronze.refresh()).load(request.id)
    if load is None or not request.is_read(load):
        return None
    behind = ReplayPlanner(layout, declared, request.source).behind(load)
    found = (each for each in holds(layout, declared) if not each.log and each.table in behind)
    return next(found, None)
