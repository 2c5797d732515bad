"""What may go wrong with a question."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class DashboardError(HeadgateError, code=exit_codes.USAGE):
    """The dashboard cannot be shown as it was asked for."""


class BadQuestionError(DashboardError):
    """A question names what does not exist, or a value does not fit."""


class NotFoundError(DashboardError):
    """There is no such pipeline, table or chart."""


class ChangedTableError(DashboardError):
    """A table is not yet as its declaration says."""


class TooMuchError(DashboardError):
    """An answer took too long, or needed too much memory."""
