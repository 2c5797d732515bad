"""Errors of savepoints."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError


class SavepointError(HeadgateError):
    """A savepoint is damaged or cannot be restored."""

    exit_code: ClassVar[int] = 5


class NoSuchSavepointError(SavepointError):
    """No savepoint, or more than one, matches a name."""

    exit_code: ClassVar[int] = 1


class FolderTakenError(SavepointError):
    """There is a pipeline in the target folder of a copy."""

    exit_code: ClassVar[int] = 2


class ResetOpenError(HeadgateError):
    """Some tables await a reset. Until it is done, their contents and needed files are unknown."""

    exit_code: ClassVar[int] = 6

    def __init__(self, pipeline: str, tables: Collection[str], why: str) -> None:
        super().__init__(
            f"{pipeline}: a reset is open ({why}): {', '.join(sorted(tables)) or 'tables'} have "
            "still to be taken back or built anew",
            remedy=f"that is done as soon as the pipeline runs: {pipeline_command('start')}, or "
            + pipeline_command("run", "--once"),
        )
