"""Errors of tables that are missing, damaged, or owned by another driver."""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError


class NoTablesError(HeadgateError):
    """A pipeline has no tables yet. ``again`` is the command that creates them."""

    def __init__(self, pipeline: str, root: str, again: str | None = None) -> None:
        again = again or pipeline_command("run", "--once")
        super().__init__(
            f"{pipeline} has no tables under {root}",
            remedy=f"{again}, or name its folder with --root",
        )


class FencedError(HeadgateError, code=exit_codes.TAKEN_OVER):
    """Another driver has taken over the pipeline. Final: this process must end."""


class CommitRefusedError(HeadgateError, code=exit_codes.TAKEN_OVER):
    """Another writer committed in between. Final for this driver; a new driver starts clean."""


class MiscountedError(HeadgateError, code=exit_codes.MACHINE):
    """A commit states other numbers of rows than its files have. Nothing was committed: the batch
    must be computed again, because a file may be lost."""


class HeldError(Exception):
    """A version breaks a rule of its table's gate. Nothing was committed; the driver goes on."""


class DamagedFileError(HeadgateError, code=exit_codes.LOG_GAP):
    """A data file is missing or is not what was written. ``at`` is the address of the file or of
    its table, if it is known."""

    def __init__(self, message: str, remedy: str, at: str = "") -> None:
        super().__init__(message, remedy)
        self.at = at


class LogGapError(HeadgateError, code=exit_codes.LOG_GAP):
    """Batches are missing from a table's log. No downstream table may continue."""
