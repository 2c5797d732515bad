"""What can be wrong with a source."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class SourceError(HeadgateError, code=exit_codes.SOURCE):
    """The source is not what it was or cannot be read; a person has to decide."""


class FileChangedError(SourceError):
    """A recorded file was rewritten or has vanished before it was read."""


class FileNotReachedError(SourceError):
    """A recorded file cannot be opened or read here, which says nothing about what is in it."""
