"""Errors of backfills."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class NotBackfilledError(HeadgateError):
    """A table cannot be computed again, or its backfill was not published."""


class OtherDeclarationError(HeadgateError, code=exit_codes.USAGE):
    """A declaration gives other tables than those that exist."""
