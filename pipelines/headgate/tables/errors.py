"""Errors after which a driver must stop writing a table."""

from __future__ import annotations

from typing import ClassVar

from headgate.errors import HeadgateError


class FencedError(HeadgateError):
    """Another driver has taken over the pipeline. Final: this process must end."""

    exit_code: ClassVar[int] = 4


class CommitRefusedError(HeadgateError):
    """Another writer committed in between. Final for this driver; a new driver starts clean."""

    exit_code: ClassVar[int] = 4


class HeldError(Exception):
    """A version breaks a rule of its table's gate. Nothing was committed; the driver goes on."""


class DamagedFileError(HeadgateError):
    """A data file is missing or is not what was written."""

    exit_code: ClassVar[int] = 5


class LogGapError(HeadgateError):
    """Batches are missing from a table's log. No downstream table may continue."""

    exit_code: ClassVar[int] = 5
