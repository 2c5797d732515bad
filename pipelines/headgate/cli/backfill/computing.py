"""Runs a backfill in this process, with a Spark session of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headgate.backfill.report import Published, Report
from headgate.backfill.reports import write_report
from headgate.backfill.store import remove_left
from headgate.cli import log_file
from headgate.cli.driving import require_machine
from headgate.cli.screen import waiting as shown_waiting
from headgate.savepoints.holds import holding
from headgate.storage.documents import new_id
from headgate.storage.layout import Layout
from headgate.tables.errors import NoTablesError
from headgate.tables.snapshot import head_table

if TYPE_CHECKING:
    from headgate.backfill.running import Asked, Outcome

    Publish = Callable[[Layout, Asked, Outcome, str], Published]


_NICENESS = 15
"""The stream has priority: a backfill and its JVM run with this niceness, on half of the cores at
most."""


def compute_here(
    layout: Layout,
    asked: Asked,
    root: str,
    *,
    check: Callable[[Report], None],
    publish: Publish | None,
) -> Outcome:
    """Compute and compare. ``check`` may refuse the result; ``publish`` is called if a row differs.
    Raises NoTablesError before anything is written, what ``backfill.running.compute`` raises, and
    what ``check`` and ``publish`` raise."""
    from headgate.backfill.running import compute

    def session() -> AbstractContextManager[Any]:
        from headgate.jobs.session import passing_session

        return passing_session("headgate-backfill", max((os.cpu_count() or 2) // 2, 1))

    if not head_table(layout, asked.deployed).exists:
        raise NoTablesError(asked.deployed.name, layout.storage.root)
    require_machine(asked.deployed)
    os.nice(_NICENESS)
    log_file.divert_to(layout, "backfill")
    remove_left(layout, asked.deployed)
    now = datetime.now(UTC)
    with holding(layout, id_ := new_id(now)):
        with shown_waiting("computing gold again, beside the stream"):
            outcome = compute(layout, asked, id_, session, now)
        check(outcome.report)
        if publish is not None and outcome.report.differing:
            published = publish(layout, asked, outcome, root)
            outcome = replace(outcome, report=replace(outcome.report, published=published))
            write_report(layout, outcome.report)
    remove_left(layout, asked.deployed)
    return outcome
