"""Records why a run failed, for supervisors, `status`, the dashboard and the page in Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from headgate import exit_codes
from headgate.cli.machine_faults import machine_fault
from headgate.commands import anywhere, commands_in, pipeline_command, rendered
from headgate.declaration.model import Pipeline
from headgate.declaration.secrets import secrets_of, without
from headgate.errors import HeadgateError, first_line
from headgate.storage.failure import Failure, forget_failure, last_failure, record_failure
from headgate.storage.layout import Layout

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
