"""The version of the format on disk: commits of tables, and documents.

The metadata of a commit is a ``tables.state.State``. A field that is added there or to a payload
needs no new format, because older commits get its default. Any other change needs one.
"""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.errors import HeadgateError

FORMAT = 3
"""Incremented if the previous version of Headgate cannot read the tables or documents of this
one."""
PACKED = 4
"""The format of commits with packed lists (``tables.packed``), which this version reads, too."""
OF_FORMAT_1 = ("headgateSeal", "seal")
"""Keys that only commits and documents of format 1 have. These do not contain the version of their
format."""


_READ = f"{FORMAT} to {PACKED}"
_NEWER = "use the newer Headgate; in a clone: git pull; make sync   (elsewhere: its wheel)"


class FormatError(HeadgateError, code=exit_codes.USAGE):
    """Another version of Headgate wrote a table or document in a format that this one does not
    read."""


def other_format(place: str, found: object) -> FormatError:
    """The error for a commit or document at ``place`` whose format has the version ``found``."""
    if isinstance(found, int) and found < FORMAT:
        return FormatError(
            f"{place}: an earlier Headgate wrote it in format {found}; this one reads {_READ}",
            remedy="build the tables again in another root: "
            + pipeline_command("run", "--root", NEW_ROOT),
        )
    return FormatError(
        f"{place}: a newer Headgate wrote it in format {found}; this one reads {_READ}",
        remedy=_NEWER,
    )


def other_content(place: str, error: Exception) -> FormatError:
    """The error for a commit at ``place`` that is intact, but cannot be decoded."""
    return FormatError(
        f"{place}: it is intact, but this Headgate cannot read what is in it: {error}",
        remedy=_NEWER + "; if another package wrote it, install the package",
    )
