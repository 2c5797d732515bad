"""Errors of sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import about_source


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


def joined_error(failed: Mapping[str, HeadgateError], sources: Collection[str]) -> HeadgateError:
    """The errors of some ``sources``, by name, as one. It names them, unless the
    pipeline has only one."""
    errors = tuple(failed.values())
    if len(sources) == 1:
        return errors[0]
    remedy, *others = dict.fromkeys(error.remedy for error in errors)
    if others:
        remedy = "\n".join(about_source(name, e.remedy, sources) for name, e in failed.items())
    is_final = any(error.exit_code == SourceError.exit_code for error in errors)
    return SourceError(
        "\n".join(about_source(name, error.message, sources) for name, error in failed.items()),
        remedy=remedy,
        code=None if is_final else errors[0].exit_code,
    )
