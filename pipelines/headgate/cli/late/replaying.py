"""``headgate late replay``: requests the operation, and waits until gold has carried it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headgate import exit_codes
from headgate.cli.driving import require_machine
from headgate.cli.late.selecting import require_marks, rows_of
from headgate.cli.options import command
from headgate.cli.output import plural, respond
from headgate.cli.person import person
from headgate.cli.requesting import PATIENCE, await_request
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import GoldTable, Pipeline
    from headgate.operations.requests import Request
    from headgate.storage.layout import Layout


class NotReplayedError(HeadgateError):
    """The replay did not take place, or is not done yet."""


class ReplayHeldError(HeadgateError, code=exit_codes.HELD):
    """The table with the replay breaks its rules."""


@dataclass(frozen=True)
class Replayed:
    """``pairs`` were folded after batch ``n``, by the operation ``number``."""

    number: int
    n: int
    pairs: int


def replay_rows(
    declared: Pipeline,
    layout: Layout,
    root: str,
    table: GoldTable,
    wanted: dict[str, Any],
    note: str,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Show what would be folded, or request the replay and wait for it. Raises NotReplayedError or
    ReplayHeldError."""
    from headgate.cli.log_file import divert_to

    require_machine(declared)
    name = f"gold.{table.name}"
    if dry_run:
        rows = rows_of(declared, layout, table, wanted, only_of_final=True)
        windows = _windows(rows, table)
        found, into = plural(len(rows), "late row"), plural(windows, "window")
        said = f"{found} of {name} would be folded, into {into}"
        document = {"table": name, "pairs": len(rows), "windows": windows}
        respond(json, {"pipeline": declared.name, **document}, said)
        return
    require_marks(declared, layout, table)
    divert_to(layout, "late")
    request = _ask(layout, wanted, note)
    done = await_request(
        declared,
        root,
        lambda: _state(declared, layout, table, request),
        gone=NotReplayedError(
            f"{name}: the request no longer exists, and no table has carried it out",
            remedy=f"see what happened: {pipeline_command('logs')}",
        ),
        waits=NotReplayedError(
            f"{name} has not carried the replay out within {PATIENCE:.0f} s; it will do so",
            remedy=f"{pipeline_command('status')}; a gate may hold the table: "
            + pipeline_command("gate status"),
        ),
    )
    document = {"table": name, "pairs": done.pairs, "n": done.n, "operation": done.number}
    replayed = plural(done.pairs, "late row")
    said = f"replayed {replayed} of {name}, after batch {done.n:,}"
    respond(
        json,
        {"pipeline": declared.name, **document},
        said if done.pairs else f"no late row of {name} was meant; nothing has changed",
        command("ledger", "--by-id"),
    )


def _windows(rows: Any, table: GoldTable) -> int:
    from headgate.declaration.operators import begin_of

    if not (begin := begin_of(table)):
        return min(len(rows), 1)
    return len(rows.column(begin[0]).unique())


def _ask(layout: Layout, wanted: Mapping[str, Any], note: str) -> Request:
    from headgate.operations import requests

    document = {**wanted, "by": person(note)}
    return requests.ask(layout, "late_replay", document, datetime.now(UTC))


def _state(
    declared: Pipeline, layout: Layout, table: GoldTable, request: Request
) -> tuple[Replayed | None, bool]:
    """The replay if gold has carried it out, and whether gold will still do so. The request is read
    before bronze, because it is removed after bronze's commit. Raises ReplayHeldError."""
    from headgate.declaration.kinds import GOLD
    from headgate.graph.graph import graph_of
    from headgate.operations.requests import waiting
    from headgate.tables.table import Table

    waits = any(each.id == request.id for each in waiting(layout))
    head = graph_of(declared).head.path
    bronze = Table(layout.storage, head, pipeline=declared.name).refresh()
    operation = request.operation(bronze)
    if operation is None:
        return None, waits
    gold = Table(layout.storage, GOLD.path(table.name), pipeline=declared.name).refresh()
    if gold.operation < operation.number:
        _require_free(declared, layout, table)
        return None, True
    pairs = _pairs(declared, layout, table, operation.number)
    return Replayed(operation.number, operation.n, pairs), False


def _require_free(declared: Pipeline, layout: Layout, table: GoldTable) -> None:
    """Raises ReplayHeldError if a gate holds the table: a person has to decide."""
    from headgate.gates.documents import holds

    for hold in holds(layout, declared):
        if hold.table == table.name and not hold.log:
            raise ReplayHeldError(
                f"the replay waits: {hold.title} is held by its rules: {hold.why}",
                remedy=f"see what can be done: {pipeline_command('gate status')}",
            )


def _pairs(declared: Pipeline, layout: Layout, table: GoldTable, number: int) -> int:
    from headgate.querying.sql import select

    sql = f"SELECT count(*) FROM late.{table.name} WHERE replayed = {number}"
    return int(select(declared, layout, sql)[1][0][0])
