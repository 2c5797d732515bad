"""The end of ``headgate run``: the ledger, and the exit code."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NoReturn

import typer

from headgate import exit_codes
from headgate.cli.hidden import shown
from headgate.cli.ledger_screen import show_ledger, summary
from headgate.cli.options import command
from headgate.cli.output import console, respond

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.errors import HeadgateError
    from headgate.storage.layout import Layout


def end_early(left: HeadgateError) -> NoReturn:
    """Print what a run with ``once`` or an upgrade has not done. Raises Exit."""
    print(shown(f"not done: {left.message}\n{left.remedy}"), file=sys.stderr)
    raise typer.Exit(left.exit_code)


def conclude(
    declared: Pipeline,
    layout: Layout,
    json: bool,
    began: float,
    before: int,
    left: HeadgateError | None,
) -> None:
    """Print the ledger after a run. Raises Exit if it does not balance, if something is ``left``,
    or if a gold table is held."""
    from headgate.gates.documents import holds
    from headgate.ledger import balance

    account = balance(layout, declared)

    def show() -> None:
        out = console()
        show_ledger(account, out, is_early=left is not None)
        # The layer is included: a table's name may be a keyword of SQL, such as "order".
        layer, tables = ("gold", declared.gold) if declared.gold else ("silver", declared.silver)
        for line in (
            command("ledger", "--by-id"),
            command("query", f"SELECT * FROM {layer}.{next(iter(tables))} LIMIT 10"),
        ):
            out.print(line, style="dim", markup=False, soft_wrap=True)

    document = summary(account, account.n - before, time.monotonic() - began)
    respond(json, document | {"left": left and shown(left.message)}, show)
    if not account.balanced:
        raise typer.Exit(exit_codes.FAILED)
    if left is not None:
        end_early(left)
    for hold in holds(layout, declared):
        text = f"{hold.title} is held by its rules: {command('gate status')}"
        print(text, file=sys.stderr)
        raise typer.Exit(exit_codes.HELD)
