"""Errors of sources."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class SourceError(HeadgateError, code=exit_codes.SOURCE):
    """The source has changed or cannot be read. A person must decide."""


class SourceUnreachableError(SourceError):
    """The source does not answer now: an outage. A driver tries again until it answers; a run with
    ``--once`` ends with this error after a while."""


class OtherKindError(SourceError, code=exit_codes.USAGE):
    """A load names files to a source of topics, or topics to a source of files."""


class FileChangedError(SourceError):
    """A recorded file was rewritten or deleted before it was read."""


class FileNotReachedError(SourceError):
    """A recorded file cannot be opened or read on this machine. Its contents may be intact."""
