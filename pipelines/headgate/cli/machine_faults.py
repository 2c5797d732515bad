"""Recognises faults of the machine, such as a full disk or a folder without permissions."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import DISK_FULL, HeadgateError, chain, said_by

_RIGHTS = {
    errno.EACCES: "Permission denied",
    errno.EROFS: "Read-only file system",
    errno.EPERM: "Operation not permitted",
}
_NO_FOLDER = {errno.ENOTDIR: "Not a directory"}
_OTHERS = {
    errno.EMFILE: "Too many open files",
    errno.EIO: "Input/output error",
    errno.ENOMEM: "Cannot allocate memory",
    errno.ESTALE: "Stale file handle",
    errno.ENOTCONN: "Transport endpoint is not connected",
}
_REMEDIES = {
    "Too many open files": "allow more of them, for example ulimit -n 65536, and run again",
    "Input/output error": "check the disk: the system's log says more; if only this file cannot be "
    "read, move it away, and repair the pipeline",
    "Cannot allocate memory": "free some memory and run again",
    "Stale file handle": "see whether the disk of this folder is mounted, and mount it again",
    "Transport endpoint is not connected": "see whether the disk of this folder is mounted, and "
    "mount it again",
}
_BY_NUMBER = {**DISK_FULL, **_RIGHTS, **_NO_FOLDER, **_OTHERS}
_PATH = re.compile(r"'(/[^']*)'")


class MachineError(HeadgateError, code=exit_codes.MACHINE):
    """The machine refused something, such as space, rights, or a folder."""


def machine_fault(error: BaseException) -> MachineError | None:
    """The fault of the machine that caused ``error``; None if there is none.

    Errors of the JVM and delta-rs have no error number: they are recognised by the text of the
    operating system.
    """
    for each in chain(error):
        known = _BY_NUMBER.get(getattr(each, "errno", None) or 0)
        reason = known or next((w for w in _BY_NUMBER.values() if w in said_by(each)), None)
        if reason is None:
            continue
        where = _where(each, reason)
        if reason in _NO_FOLDER.values():
            file = _file_in_the_way(each)
            return MachineError(
                f"{file} is a file, and a folder is needed" if file else f"{reason}{where}",
                remedy="name a folder instead, or move the file away",
            )
        if reason in _RIGHTS.values():
            return MachineError(
                f"{reason}{where}",
                remedy=f"give this user the rights, or: {shell_command('doctor')}",
            )
        if reason in _REMEDIES:
            return MachineError(f"{reason}{where}", remedy=_REMEDIES[reason])
        return MachineError(
            f"the disk is full ({reason}{where}); what is committed is intact",
            remedy="free some space and run again: every table continues from its position",
        )
    return None


def _file_in_the_way(error: BaseException) -> Path | None:
    """The file in the place of a folder, in the path that the error names."""
    quoted = _PATH.search(said_by(error))
    named = getattr(error, "filename", None) or (quoted and quoted[1])
    path = Path(named if isinstance(named, str) else "")
    return next((each for each in (path, *path.parents) if each.is_file()), None)


def _where(error: BaseException, reason: str) -> str:
    """After a colon, the file of the error, or the line of its message that has ``reason``."""
    named = getattr(error, "filename", None)
    line = next((line.strip() for line in said_by(error).splitlines() if reason in line), "")
    return f": {named or line}" if named or line != reason else ""
