"""The version of the format on disk: commits of tables, and documents.

The metadata of a commit is a ``lake.tables.state.State``. A field with a default that is added
there or to a payload needs no new version. Any other change of a commit or of a document needs one.
"""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.errors import HeadgateError

FORMAT = 8
"""The only version that is read. Lower ones were used before the first release."""

_NEWER = "use the newer Headgate; in a clone: git pull; make sync   (elsewhere: its wheel)"


class FormatError(HeadgateError, code=exit_codes.USAGE):
    """Another version of Headgate wrote a table or document in a format that this one does not
    read."""


def other_format(place: str, found: object) -> FormatError:
    """The error for a commit or document at ``place`` whose format has the version ``found``."""
    is_earlier = isinstance(found, int) and found < FORMAT
    writer = "an earlier" if is_earlier else "a newer"
    again = "build the tables again in another root: " + pipeline_command("run", "--root", NEW_ROOT)
    return FormatError(
        f"{place}: {writer} Headgate wrote it in format {found}; this one reads {FORMAT}",
        remedy=again if is_earlier else _NEWER,
    )


def other_content(place: str, error: Exception) -> FormatError:
    """The error for a commit at ``place`` that is intact, but cannot be decoded."""
    return FormatError(
        f"{place}: it is intact, but this Headgate cannot read what is in it: {error}",
        remedy=_NEWER + "; if another package wrote it, install the package",
    )
