"""Why a driver has to let go of a table."""

from __future__ import annotations

from typing import ClassVar

from headgate.errors import HeadgateError


class FencedError(HeadgateError):
    """Another driver has taken the pipeline over. Final: this process must end."""

    exit_code: ClassVar[int] = 4


class CommitRefusedError(HeadgateError):
    """Somebody else committed in between. Final for this driver, a new one starts clean."""

    exit_code: ClassVar[int] = 4


class DamagedFileError(HeadgateError):
    """A data file is missing or is not what was written."""

    exit_code: ClassVar[int] = 5


class LogGapError(HeadgateError):
    """Batches are missing from a table's log: nothing downstream may go on."""

    exit_code: ClassVar[int] = 5
