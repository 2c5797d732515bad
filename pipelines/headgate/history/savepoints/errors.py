"""Errors of savepoints."""

from __future__ import annotations

from collections.abc import Collection

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError


class SavepointError(HeadgateError, code=exit_codes.LOG_GAP):
    """A savepoint is damaged or cannot be restored."""


class NoSuchSavepointError(SavepointError, code=exit_codes.FAILED):
    """No savepoint, or more than one, matches a name."""


class FolderTakenError(SavepointError, code=exit_codes.USAGE):
    """There is a pipeline in the target folder of a copy."""


class ResetOpenError(HeadgateError, code=exit_codes.LEASE_HELD):
    """Some tables await a reset. Until it is done, their contents and needed files are unknown."""

    def __init__(self, pipeline: str, tables: Collection[str], why: str) -> None:
        super().__init__(
            f"{pipeline}: a reset is not finished ({why}): "
            f"{', '.join(sorted(tables)) or 'tables'} must still be reset or rebuilt",
            remedy=f"the next run finishes it: {pipeline_command('start')}, or "
            + pipeline_command("run", "--once"),
        )
