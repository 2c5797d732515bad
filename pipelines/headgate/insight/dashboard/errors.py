"""What may go wrong with a question."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class DashboardError(HeadgateError, code=exit_codes.USAGE):
    """The dashboard cannot be shown as requested."""


class BadQuestionError(DashboardError):
    """A question names something that does not exist, or has a value that is not valid."""


class NotFoundError(DashboardError):
    """There is no such pipeline, table or chart."""


class ChangedTableError(DashboardError):
    """A table does not have the columns of its changed declaration yet."""


class TooMuchError(DashboardError):
    """An answer took too long, or needed too much memory."""
