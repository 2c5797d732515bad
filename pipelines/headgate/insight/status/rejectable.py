"""Which held version a person can give up, and what to do about the others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headgate.commands import pipeline_command
from headgate.declaration.contracts.operation import is_rejected
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError, UsageError
from headgate.flow.gates.documents import Hold, Rejection
from headgate.history.loads import requests as loads
from headgate.history.savepoints.rebuilds import begun_rebuild
from headgate.insight.status.held_versions import HeldVersion, operation_of
from headgate.lake.storage.documents import new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.snapshot import head_table


def rejectable(declared: Pipeline, layout: Layout, hold: Hold) -> Operation:
    """The replay or backfill that holds a table. Raises UsageError if something else holds it, and
    HeadgateError if it cannot be given up now."""
    table = f"gold.{hold.table}"
    if not hold.is_of_operation:
        what = f"{hold.title} is held by {hold.what}, which cannot be given up"
        if hold.log:
            raise UsageError(what, remedy=f"{_release(table, '--rebuild')}, or change the rule")
        raise UsageError(
            f"{hold.title} is held by {hold.what}: events are not given up",
            remedy=f"see the rows: {pipeline_command('gate show', table)}; then release them: "
            f"{_release(table)}; or change the rule in expectations/; or keep such events out of "
            "silver with a rule for its rows, and rebuild it: "
            + pipeline_command("run", "--full-refresh", f"silver.{_silver(declared, hold)}"),
        )
    found = operation_of(layout, declared, hold)
    if found is None or is_rejected(found.document, GOLD.path(hold.table)):
        raise HeadgateError(
            f"{hold.title}: this operation is given up already",
            remedy=f"see what holds the table: {pipeline_command('gate status')}",
        )
    if found.name == "drain":
        raise UsageError(
            f"{hold.title} is held by a drain, which cannot be given up: its windows are closed",
            remedy=f"{_release(table)}, or change the rule",
        )
    load = loads.find_request(layout, str(found.document.get("load")))
    if load is not None and load.wish in ("open", "paused"):
        raise HeadgateError(
            f"{hold.title} is held by the load {load.id}, which would fold these rows again",
            remedy=f"cancel it first: {pipeline_command('load', '--cancel')}",
        )
    rebuild = begun_rebuild(layout, head_table(layout, declared).refresh().generation)
    if rebuild is not None and GOLD.path(hold.table) in rebuild.tables:
        raise HeadgateError(
            f"{hold.title} is being rebuilt, and the rebuild carries the operation out, too",
            remedy=f"wait until the rebuild is published: {pipeline_command('status')}",
        )
    return found


def only_rejectable(
    declared: Pipeline, layout: Layout, held: Iterable[HeldVersion]
) -> list[HeldVersion]:
    """Those that can be given up. Raises as ``rejectable`` for the first one if none can."""
    found, why = list[HeldVersion](), None
    for each in held:
        try:
            rejectable(declared, layout, each.hold)
            found.append(each)
        except HeadgateError as error:
            why = why or error
    if why is not None and not found:
        raise why
    return found


def rejection(hold: Hold, operation: Operation, by: str, reason: str, now: datetime) -> Rejection:
    """The request to give an operation up."""
    version = operation.number, hold.generation
    return Rejection(new_id(now), hold.table, *version, by, reason, now)


def _release(table: str, *options: str) -> str:
    return pipeline_command("gate release", table, *options, "--reason", "WHY")


def _silver(declared: Pipeline, hold: Hold) -> str:
    return declared.gold[hold.table].silver
