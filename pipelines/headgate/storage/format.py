"""The version of the format on disk: commits of tables, and documents.

The metadata of a commit is a ``tables.state.State``. A change after which commits of earlier
versions are still read needs no new format: a new field, for example, because older commits get
its default. Any other change needs one.
"""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import NEW_ROOT, pipeline_command
from headgate.errors import HeadgateError

FORMAT = 3
"""Incremented if this version of Headgate cannot read the tables or documents of the previous
one."""
OF_FORMAT_1 = ("headgateSeal", "seal")
"""Keys that only commits and documents of format 1 have. These do not contain the version of their
format."""


class FormatError(HeadgateError, code=exit_codes.USAGE):
    """Another version of Headgate wrote a table or document in a format that this one does not
    read."""


def other_format(place: str, found: object) -> FormatError:
    """The error for a commit or document at ``place`` whose format has the version ``found``."""
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
