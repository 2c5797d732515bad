"""Publishes the result of a backfill, and waits until all of its tables have it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.backfill.publication import published_by
from headgate.backfill.report import Published, Report
from headgate.cli.options import command
from headgate.cli.person import person
from headgate.cli.requesting import PATIENCE, await_request, carried_out
from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD
from headgate.errors import HeadgateError
from headgate.gates.documents import holds
from headgate.operations.requests import Request
from headgate.savepoints.store import create
from headgate.storage.layout import Layout
from headgate.tables.table import Table

if TYPE_CHECKING:
    from headgate.backfill.running import Asked, Outcome


def publish_here(note: str) -> Callable[[Layout, Asked, Outcome, str], Published]:
    """A function that takes a savepoint, requests the operation and waits for it. It raises
    HeadgateError if the backfill is not published, or not yet."""

    def publish(layout: Layout, asked: Asked, outcome: Outcome, root: str) -> Published:
        from headgate.backfill.running import ask_to_publish

        now, id_ = datetime.now(UTC), outcome.report.id
        savepoint = create(layout, asked.deployed, now, f"before backfill {id_}").id
        print(f"savepoint {savepoint} was taken before", file=sys.stderr)
        request = ask_to_publish(layout, outcome, savepoint, person(note), now)
        back = command("savepoint restore", savepoint)
        return await_request(
            asked.deployed,
            root,
            lambda: _state(layout, asked, outcome, request),
            gone=HeadgateError(
                "the tables were reset since they were compared, so nothing was published",
                remedy="type the command again",
            ),
            waits=HeadgateError(
                f"not all tables have taken the backfill over within {PATIENCE:.0f} s; they will",
                remedy=f"{pipeline_command('status')}; to take it back: {back}",
            ),
        )

    return publish


def require_expected(expected: Mapping[str, str] | None, report: Report) -> None:
    """Raises HeadgateError if the computed rows do not have the expected digests. None: any."""
    if expected is None:
        return
    others = [
        f"gold.{each.table}: {expected.get(each.table, 'nothing')} was expected, and "
        f"{each.backfilled} was computed"
        for each in report.tables
        if each.backfilled != expected.get(each.table)
    ]
    if others:
        raise HeadgateError(
            "nothing was published: " + "; ".join(others),
            remedy="leave out --publish and --expect to see how they differ from gold",
            code=exit_codes.DIFFERS,
        )


def _state(
    layout: Layout, asked: Asked, outcome: Outcome, request: Request
) -> tuple[Published | None, bool]:
    """The publication, once each table has carried it out or is held by its gate, and whether a
    table has not carried it out yet."""
    tables = {
        name: Table(layout.storage, GOLD.path(name), pipeline=asked.deployed.name)
        for name in outcome.patches
    }
    operation, still = carried_out(asked.deployed, layout, request, tables.values())
    if operation is None:
        return None, still
    found = published_by(layout, asked.deployed.name, operation)
    held = {hold.table for hold in holds(layout, asked.deployed) if not hold.log}
    return (found if held.issuperset(found.waiting) else None), bool(found.waiting)
