"""The end of a run: the ledger, the exit code, and the record of a failure for supervisors,
`status`, the dashboard and the page in Airflow."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import NoReturn

import typer

from headgate import exit_codes
from headgate.cli.hidden import shown
from headgate.cli.ledger import show_ledger, summary
from headgate.cli.machine_faults import machine_fault
from headgate.cli.options import command
from headgate.cli.output import console, respond
from headgate.commands import anywhere, commands_in, pipeline_command, rendered
from headgate.declaration.model import Pipeline
from headgate.declaration.secrets import secrets_of, without
from headgate.errors import HeadgateError, first_line
from headgate.lake.control.driver_reports import (
    Failure,
    forget_failure,
    last_failure,
    record_failure,
)
from headgate.lake.storage.layout import Layout


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
    from headgate.flow.gates.documents import holds
    from headgate.insight.ledger import balance

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

    document = summary(account, account.batches - before, time.monotonic() - began)
    respond(json, document | {"left": left and shown(left.message)}, show)
    if not account.balanced:
        raise typer.Exit(exit_codes.FAILED)
    if left is not None:
        end_early(left)
    for hold in holds(layout, declared):
        text = f"{hold.title} is held by its rules: {command('gate status')}"
        print(text, file=sys.stderr)
        raise typer.Exit(exit_codes.HELD)


_DID_NOTHING = (exit_codes.LEASE_HELD, exit_codes.PAUSED)
"""Exit codes of a run that did nothing, because another process owns the pipeline or it is paused:
the failure of the run before it is recorded again."""


class AlreadyRecordedError(HeadgateError):
    """A failure of another process, which has recorded it itself."""


@contextmanager
def failure_recorded(pipeline: Pipeline, root: str, *, forgets: bool) -> Iterator[None]:
    """Record an error of the block and raise it again. With ``forgets`` the failure of an earlier
    run is removed first; the job of a single layer keeps it."""
    layout, before = Layout.of(root, pipeline.name), None
    if forgets:
        with suppress(OSError, HeadgateError):  # a damaged record is replaced anyway
            before = last_failure(layout)
        forget_failure(layout)
    try:
        yield
    except Exception as error:
        failure = failure_of(error, pipeline, root, datetime.now(UTC))
        recorded = before if failure.code in _DID_NOTHING else failure
        # After a take-over, the tables are those of another driver.
        is_ours = not isinstance(error, AlreadyRecordedError)
        if recorded is not None and is_ours and failure.code != exit_codes.TAKEN_OVER:
            with suppress(OSError, HeadgateError):  # a failed record must not hide the error
                record_failure(layout, recorded)
        raise


def failure_of(error: Exception, pipeline: Pipeline, root: str, at: datetime) -> Failure:
    """The record, without secrets. Its remedy names file and root, so it works in any shell."""
    known = error if isinstance(error, HeadgateError) else machine_fault(error)
    place = anywhere(pipeline.file, root)
    secrets = secrets_of(pipeline)
    if known is None:
        reason = first_line(error)
        code, remedy = exit_codes.UNEXPECTED, pipeline_command("logs")
    else:
        reason, code, remedy = known.message, known.exit_code, known.remedy
    commands = tuple(without(secrets, each) for each in commands_in(remedy, place))
    reason, remedy = (without(secrets, rendered(text, place)) for text in (reason, remedy))
    return Failure(code, reason, remedy, at, commands)
