"""Publishes the result of a backfill, and waits until all of its tables have it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.cli.options import command
from headgate.cli.person import person
from headgate.cli.requesting import PATIENCE, await_request
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.backfill.report import Published, Report
    from headgate.backfill.running import Asked, Outcome
    from headgate.operations.requests import Request
    from headgate.storage.layout import Layout


class NotPublishedError(HeadgateError):
    """The backfill was not published, or not yet."""


class UnexpectedRowsError(HeadgateError, code=exit_codes.DIFFERS):
    """The computed rows do not have the expected digests."""


def publish_here(
    note: str, expected: Mapping[str, str] | None
) -> Callable[[Layout, Asked, Outcome, str], Published]:
    """A function that takes a savepoint, requests the operation and waits for it. It raises
    UnexpectedRowsError if the computed rows do not have the digests ``expected``,
    NotPublishedError."""

    def publish(layout: Layout, asked: Asked, outcome: Outcome, root: str) -> Published:
        from headgate.backfill.running import ask_to_publish
        from headgate.savepoints.store import create

        if expected is not None:
            _require(outcome.report, expected)
        now, id_ = datetime.now(UTC), outcome.report.id
        savepoint = create(layout, asked.deployed, now, f"before backfill {id_}").id
        print(f"savepoint {savepoint} was taken before", file=sys.stderr)
        request = ask_to_publish(layout, outcome, savepoint, person(note), now)
        back = command("savepoint restore", savepoint)
        return await_request(
            asked.deployed,
            root,
            lambda: _state(layout, asked, outcome, request, savepoint),
            gone=NotPublishedError(
                "the tables were reset since they were compared, so nothing was published",
                remedy="type the command again",
            ),
            waits=NotPublishedError(
                f"not all tables have taken the backfill over within {PATIENCE:.0f} s; they will",
                remedy=f"{pipeline_command('status')}; a gate may hold one: "
                + pipeline_command("gate status")
                + f"; to take it back: {back}",
            ),
        )

    return publish


def _require(report: Report, expected: Mapping[str, str]) -> None:
    """Raises UnexpectedRowsError."""
    others = [
        f"gold.{each.table}: {expected.get(each.table, 'nothing')} was expected, and "
        f"{each.backfilled} was computed"
        for each in report.tables
        if each.backfilled != expected.get(each.table)
    ]
    if others:
        raise UnexpectedRowsError(
            "nothing was published: " + "; ".join(others),
            remedy="leave out --publish and --expect to see how they differ from gold",
        )


def _state(
    layout: Layout, asked: Asked, outcome: Outcome, request: Request, savepoint: str
) -> tuple[Published | None, bool]:
    """The publication if all tables have carried it out, and whether they still will. The request
    is read before bronze, because it is removed after bronze's commit."""
    from headgate.backfill.publication import is_void
    from headgate.backfill.report import Published
    from headgate.declaration.kinds import GOLD
    from headgate.graph.graph import graph_of
    from headgate.operations.requests import waiting
    from headgate.tables.table import Table

    def table(path: str) -> Table:
        return Table(layout.storage, path, pipeline=asked.deployed.name)

    waits = any(each.id == request.id for each in waiting(layout))
    head = graph_of(asked.deployed).head.path
    operation = request.operation(table(head).refresh())
    if operation is None:
        return None, waits
    tables = {name: table(GOLD.path(name)) for name in outcome.patches}
    if any(each.refresh().operation < operation.number for each in tables.values()):
        return None, True
    void = tuple(name for name, each in tables.items() if is_void(each, operation.number))
    return Published(operation.number, savepoint, void), False
