"""Errors that a person can act on: what is wrong, where, and the next command to type.

Every error that Headgate raises on purpose is a :class:`HeadgateError`. The command line prints
``str(error)`` and exits with ``error.exit_code``.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

from headgate import exit_codes
from headgate.commands import Place, rendered


class HeadgateError(Exception):
    """``message`` says what is wrong and where, ``remedy`` what to type or change next. Commands in
    either are marked (``commands.py``); ``str`` has them as they are typed here. ``code`` is the
    exit code. A subclass, for an error that some caller treats in its own way, may name it:
    ``class MachineError(HeadgateError, code=exit_codes.MACHINE)``."""

    exit_code: int = exit_codes.FAILED

    def __init_subclass__(cls, code: int | None = None) -> None:
        if code is not None:
            cls.exit_code = code

    def __init__(self, message: str, remedy: str, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if code is not None:
            self.exit_code = code

    def __str__(self) -> str:
        return self.text()

    def text(self, place: Place | None = None) -> str:
        """Message and remedy, with commands as they are typed at ``place``, by default here."""
        return rendered(f"{self.message}\n{self.remedy}", place)


class UsageError(HeadgateError, code=exit_codes.USAGE):
    """The command line, or something that it names, is wrong."""


def said_by(error: BaseException) -> str:
    """The message of an error; empty if it cannot be read. The message of a JVM's error is in that
    JVM, which may have ended."""
    try:
        return str(error)
    except Exception:
        return ""


def first_line(error: BaseException) -> str:
    """The type of an error, and the first line of its message."""
    name, said = type(error).__name__, said_by(error)
    return f"{name}: {said.splitlines()[0]}" if said else name


def cause_of(error: BaseException) -> str:
    """Why a file cannot be read or written, in the words of the operating system if it has some."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from or after."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


DISK_FULL = {errno.ENOSPC: "No space left on device", errno.EDQUOT: "Disk quota exceeded"}
"""Error numbers of a full disk, with the texts by which errors of the JVM and delta-rs, which have
no number, are recognised."""


def is_disk_full(error: BaseException) -> bool:
    """Whether a full disk has caused an error."""
    return any(
        getattr(each, "errno", None) in DISK_FULL
        or any(text in said_by(each) for text in DISK_FULL.values())
        for each in chain(error)
    )


def joined_messages(messages: Iterable[str | None]) -> str | None:
    """The messages that there are, in order; None if there is none."""
    return "; ".join(filter(None, messages)) or None
