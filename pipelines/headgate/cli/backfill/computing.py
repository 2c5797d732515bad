"""Runs a backfill in this process, with a Spark session of its own, and publishes its result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.cli import log_file
from headgate.cli.driving import (
    give_the_stream_priority,
    require_machine,
    session_beside_the_stream,
)
from headgate.cli.options import command
from headgate.cli.requesting import PATIENCE, await_request, carried_out, person
from headgate.cli.screen import waiting as shown_waiting
from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import tables_held
from headgate.history.backfill.folders import remove_ended_backfills
from headgate.history.backfill.report import (
    BackfillReport,
    PublishedBackfill,
    publication_of,
    write_report,
)
from headgate.history.savepoints.holds import holding
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.requests import Request
from headgate.lake.storage.documents import new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import NoTablesError
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    from headgate.history.backfill.running import BackfillOutcome, BackfillScope

    Publish = Callable[[Layout, BackfillScope, BackfillOutcome, str], PublishedBackfill]


def compute_here(
    layout: Layout,
    asked: BackfillScope,
    root: str,
    *,
    check: Callable[[BackfillReport], None],
    publish: Publish | None,
) -> BackfillOutcome:
    """Compute and compare. ``check`` may refuse the result; ``publish`` is called if a row differs.
    Raises NoTablesError before anything is written, what ``compute_backfill`` raises, and what
    ``check`` and ``publish`` raise."""
    from headgate.history.backfill.running import compute_backfill

    if not ControlTable.of(layout.storage, asked.deployed.name).exists:
        raise NoTablesError(asked.deployed.name, layout.storage.root)
    require_machine(asked.deployed)
    give_the_stream_priority()
    log_file.divert_to(layout, "backfill")
    remove_ended_backfills(layout, asked.deployed)
    now = datetime.now(UTC)
    with holding(layout, id_ := new_id(now)):
        with shown_waiting("computing gold again, beside the stream"):
            outcome = compute_backfill(
                layout, asked, id_, lambda: session_beside_the_stream("headgate-backfill"), now
            )
        check(outcome.report)
        if publish is not None and outcome.report.differing:
            published = publish(layout, asked, outcome, root)
            outcome = replace(outcome, report=replace(outcome.report, published=published))
            write_report(layout, outcome.report)
    remove_ended_backfills(layout, asked.deployed)
    return outcome


def publish_here(
    note: str,
) -> Callable[[Layout, BackfillScope, BackfillOutcome, str], PublishedBackfill]:
    """A function that takes a savepoint, requests the operation and waits for it. It raises
    HeadgateError if the backfill is not published, or not yet."""

    def publish(
        layout: Layout, asked: BackfillScope, outcome: BackfillOutcome, root: str
    ) -> PublishedBackfill:
        from headgate.history.backfill.running import ask_to_publish

        now, id_ = datetime.now(UTC), outcome.report.id
        savepoint = create_savepoint(layout, asked.deployed, now, f"before backfill {id_}").id
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


def require_expected(expected: Mapping[str, str] | None, report: BackfillReport) -> None:
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
    layout: Layout, asked: BackfillScope, outcome: BackfillOutcome, request: Request
) -> tuple[PublishedBackfill | None, bool]:
    """The publication, once each table has carried it out or is held by its gate, and whether a
    table has not carried it out yet."""
    tables = {
        name: Table(layout.storage, GOLD.path(name), pipeline=asked.deployed.name)
        for name in outcome.patches
    }
    operation, still = carried_out(asked.deployed, layout, request, tables.values())
    if operation is None:
        return None, still
    found = publication_of(layout, asked.deployed.name, operation)
    held = tables_held(layout, asked.deployed)
    is_over = held.keys() >= {*found.waiting}
    return (found if is_over else None), bool(found.waiting)
