"""Leaves behind why a run failed, for those who look later: a supervisor, a page, `status`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from headgate import exit_codes
from headgate.cli.machine_faults import machine_fault
from headgate.commands import anywhere, commands_in, pipeline_command, rendered
from headgate.declaration.model import Pipeline
from headgate.declaration.secrets import secrets_of, without
from headgate.errors import HeadgateError
from headgate.storage.failure import Failure, forget_failure, last_failure, record_failure
from headgate.storage.layout import Layout

_OF_ANOTHER = (exit_codes.TAKEN_OVER, exit_codes.LEASE_HELD, exit_codes.PAUSED)
"""Exit codes of a run that did nothing, because the pipeline is another's or is to rest."""


class AlreadyRecordedError(HeadgateError):
    """A failure of another process, which has recorded it."""


@contextmanager
def failure_recorded(pipeline: Pipeline, root: str, *, forgets: bool) -> Iterator[None]:
    """Records what is raised, and raises it. A failure from before is forgotten first where the run
    ``forgets``: one layer of several does not."""
    layout, before = Layout.of(root, pipeline.name), None
    if forgets:
        with suppress(OSError, HeadgateError):  # damaged: its place is taken anyway
            before = last_failure(layout)
        forget_failure(layout)
    try:
        yield
    except Exception as error:
        failure = failure_of(error, pipeline, root, datetime.now(UTC))
        recorded = before if failure.code in _OF_ANOTHER else failure
        if recorded is not None and not isinstance(error, AlreadyRecordedError):
            with suppress(OSError, HeadgateError):  # nothing hides the error itself
                record_failure(layout, recorded)
        raise


def failure_of(error: Exception, pipeline: Pipeline, root: str, at: datetime) -> Failure:
    """Without secrets. The remedy can be typed anywhere: it names the file and the root."""
    known = error if isinstance(error, HeadgateError) else machine_fault(error)
    place = anywhere(pipeline.file, root)
    secrets = secrets_of(pipeline)
    if known is None:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        code, remedy = exit_codes.UNEXPECTED, pipeline_command("logs")
    else:
        reason, code, remedy = known.message, known.exit_code, known.remedy
    commands = tuple(without(secrets, each) for each in commands_in(remedy, place))
    reason, remedy = (without(secrets, rendered(text, place)) for text in (reason, remedy))
    return Failure(code, reason, remedy, at, commands)
