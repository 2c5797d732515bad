"""What is wrong with a savepoint."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError


class SavepointError(HeadgateError):
    """A savepoint that is not what it was, or cannot be gone back to."""

    exit_code: ClassVar[int] = 5


class NoSuchSavepointError(SavepointError):
    """No savepoint, or more than one, is called so."""

    exit_code: ClassVar[int] = 1


class FolderTakenError(SavepointError):
    """A copy would lie where a pipeline is."""

    exit_code: ClassVar[int] = 2


class ResetOpenError(HeadgateError):
    """Some tables await a reset: until that is done, what they need or hold nobody can say."""

    exit_code: ClassVar[int] = 6

    def __init__(self, pipeline: str, tables: Collection[str], why: str) -> None:
        super().__init__(
            f"{pipeline}: a reset is open ({why}): {', '.join(sorted(tables)) or 'tables'} have "
            "still to be taken back or built anew",
            remedy=f"that is done as soon as the pipeline runs: {pipeline_command('start')}, or "
            + pipeline_command("run", "--once"),
        )
