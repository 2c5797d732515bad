"""``headgate late replay``: requests the operation, and waits until gold has carried it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headgate import exit_codes
from headgate.cli import log_file
from headgate.cli.driving import require_machine
from headgate.cli.late.selecting import require_marks, rows_of
from headgate.cli.options import command
from headgate.cli.output import respond
from headgate.cli.person import person
from headgate.cli.requesting import PATIENCE, await_request, carried_out
from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.operators import begin_of
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.gates.documents import holds
from headgate.operations import requests
from headgate.operations.requests import Request
from headgate.querying.sql import select
from headgate.storage.layout import Layout
from headgate.tables.table import Table


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
    """Show what would be folded, or request the replay and wait for it. Raises HeadgateError if
    the replay did not take place, is not done yet, or breaks the table's rules."""
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
    log_file.divert_to(layout, "late")
    request = _ask(layout, wanted, note)
    done = await_request(
        declared,
        root,
        lambda: _state(declared, layout, table, request),
        gone=HeadgateError(
            f"{name}: the request no longer exists, and no table has carried it out",
            remedy=f"see what happened: {pipeline_command('logs')}",
        ),
        waits=HeadgateError(
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
    if not (begin := begin_of(table)):
        return min(len(rows), 1)
    return len(rows.column(begin[0]).unique())


def _ask(layout: Layout, wanted: Mapping[str, Any], note: str) -> Request:
    document = {**wanted, "by": person(note)}
    return requests.ask(layout, "late_replay", document, datetime.now(UTC))


def _state(
    declared: Pipeline, layout: Layout, table: GoldTable, request: Request
) -> tuple[Replayed | None, bool]:
    """The replay if gold has carried it out, and whether gold will still do so. Raises
    HeadgateError if a gate holds the table."""
    gold = Table(layout.storage, GOLD.path(table.name), pipeline=declared.name)
    operation, still = carried_out(declared, layout, request, [gold])
    if operation is not None and still:
        _require_free(declared, layout, table)
    if operation is None or still:
        return None, still
    pairs = _pairs(declared, layout, table, operation.number)
    return Replayed(operation.number, operation.n, pairs), False


def _require_free(declared: Pipeline, layout: Layout, table: GoldTable) -> None:
    """Raises HeadgateError if a gate holds the table: a person has to decide."""
    for hold in holds(layout, declared):
        if hold.table == table.name and not hold.log:
            raise HeadgateError(
                f"the replay waits: {hold.title} is held by its rules: {hold.why}",
                remedy=f"see what can be done: {pipeline_command('gate status')}",
                code=exit_codes.HELD,
            )


def _pairs(declared: Pipeline, layout: Layout, table: GoldTable, number: int) -> int:
    sql = f"SELECT count(*) FROM late.{table.name} WHERE replayed = {number}"
    return int(select(declared, layout, sql)[1][0][0])
