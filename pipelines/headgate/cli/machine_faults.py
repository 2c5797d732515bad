"""Faults of the machine, told from faults of Headgate: a full disk, a folder without rights."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from headgate.spec.errors import HeadgateError

_FULL = "No space left on device"
_FULL_AGAIN = "Disk quota exceeded"
_RIGHTS = {"Permission denied", "Read-only file system", "Operation not permitted"}
_BY_NUMBER = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL_AGAIN,
    errno.EACCES: "Permission denied",
    errno.EROFS: "Read-only file system",
    errno.EPERM: "Operation not permitted",
}


def machine_fault(error: BaseException, exit_code: int) -> HeadgateError | None:
    """What the machine refused somewhere below ``error``; None where it refused nothing.

    The JVM's and delta-rs' errors have no number: their words are the operating system's.
    """
    for each in _chain(error):
        known = _BY_NUMBER.get(getattr(each, "errno", None) or 0)
        said = known or next((w for w in _BY_NUMBER.values() if w in str(each)), None)
        if said is None:
            continue
        where = _where(each, said)
        if said in _RIGHTS:
            found = HeadgateError(
                f"{said}{where}", remedy="give this user the rights, or: headgate doctor"
            )
        else:
            found = HeadgateError(
                f"the disk is full ({said}{where}); what is committed is whole",
                remedy="free some space and run again: every table goes on where it stands",
            )
        found.exit_code = exit_code  # type: ignore[misc]
        return found
    return None


def _where(error: BaseException, said: str) -> str:
    """The file that was refused, or the line of the message that names it."""
    named = getattr(error, "filename", None)
    line = next((line.strip() for line in str(error).splitlines() if said in line), "")
    return f": {named or line}" if named or line != said else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
