"""Errors after which a driver must stop writing a table."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class FencedError(HeadgateError, code=exit_codes.TAKEN_OVER):
    """Another driver has taken over the pipeline. Final: this process must end."""


class CommitRefusedError(HeadgateError, code=exit_codes.TAKEN_OVER):
    """Another writer committed in between. Final for this driver; a new driver starts clean."""


class HeldError(Exception):
    """A version breaks a rule of its table's gate. Nothing was committed; the driver goes on."""


class DamagedFileError(HeadgateError, code=exit_codes.LOG_GAP):
    """A data file is missing or is not what was written."""


class LogGapError(HeadgateError, code=exit_codes.LOG_GAP):
    """Batches are missing from a table's log. No downstream table may continue."""
