"""The version of the format on disk: commits of tables, and documents.

The metadata of a commit is a ``tables.state.State``. A field that is added there or to a payload
needs no new format, because older commits get its default. Any other change needs one.
"""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.errors import HeadgateError

FORMAT = 3
"""Raised when tables or documents of this Headgate cannot be read by the one before."""
OF_FORMAT_1 = ("headgateSeal", "seal")
"""Keys that only commits and documents of format 1 have. They do not name their format."""


class FormatError(HeadgateError, code=exit_codes.USAGE):
    """Another version of Headgate wrote this, in a format that this one does not read."""


def other_format(place: str, found: object) -> FormatError:
    """``found`` is the version of the format of what lies at ``place``."""
    if isinstance(found, int) and found < FORMAT:
        return FormatError(
            f"{place}: an earlier Headgate wrote it in format {found}; this one reads {FORMAT}",
            remedy="build the tables again in another root: "
            + pipeline_command("run", "--root", NEW_ROOT),
        )
    return FormatError(
        f"{place}: a newer Headgate wrote it in format {found}; this one reads {FORMAT}",
        remedy="use the newer Headgate; in a clone: git pull; make sync   (elsewhere: its wheel)",
    )
