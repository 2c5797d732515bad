"""Names of files as UTF-8, in this process and in those that it starts.

A JVM reads and writes names in the encoding of its locale: in the locale ``C``, it cannot open a
path with an umlaut. So child processes get a locale with UTF-8 if this process has none. Python
itself uses UTF-8 in the locale ``C``, but not in one such as ``de_DE.ISO-8859-1``.
"""

from __future__ import annotations

import locale
import os
import sys

_PYTHON = "PYTHONUTF8"
_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8")


def use_utf8() -> None:
    """Use UTF-8 from now on, in children too, whatever the locale is. May start this program again,
    in place of this process. Not for use beside other threads."""
    if not _is_utf8(locale.getencoding()) and (name := _locale()) is not None:
        os.environ["LC_ALL"] = name
    if not _is_utf8(sys.getfilesystemencoding()) and os.environ.get(_PYTHON) != "1":
        os.environ[_PYTHON] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def other_encoding() -> str | None:
    """The encoding of the names of files in a JVM, if there is no locale with UTF-8."""
    given = locale.getencoding()
    return None if _is_utf8(given) or _locale() is not None else given


def _locale() -> str | None:
    """A locale of this machine that has UTF-8."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        return next(filter(_can_be_set, _LOCALES), None)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def _can_be_set(name: str) -> bool:
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    return True


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"
