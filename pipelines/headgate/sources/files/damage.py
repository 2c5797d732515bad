"""Finds the files that made a batch fail: reads each file to its end."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterable

import pyarrow as pa

from headgate.sources.errors import FileNotReachedError
from headgate.sources.files.declared import FilesSource
from headgate.sources.files.log import LoggedFile
from headgate.sources.files.parts import parts
from headgate.storage.files import Storage

_BLOCK = 1 << 20  # bytes


def unreadable(
    landing: Storage, source: FilesSource, files: Iterable[LoggedFile]
) -> dict[LoggedFile, str]:
    """The files that cannot be read, each with the reason.

    Raises FileNotReachedError if the cause is not in the file: setting it aside would lose it.
    """
    found = {}
    for file in files:
        try:
            for part in parts(landing, source, [file]):
                for _ in part.blocks():
                    pass
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            if (why := _outside(landing, file, error)) is not None:
                raise FileNotReachedError(
                    f"{landing.uri(file.path)}: {why}; the file is recorded as sequence "
                    f"{file.sequence}, and nothing is read past it",
                    remedy=f"{_remedy(landing.uri(file.path), error)}; then start again",
                ) from error
            found[file] = f"{type(error).__name__}: {error}"
    return found


def _outside(landing: Storage, file: LoggedFile, error: Exception) -> str | None:
    """The cause of an error if it is not in the content of the file."""
    if isinstance(error, MemoryError):
        return "there is too little memory to read it"
    if not isinstance(error, OSError):
        return None
    # Decoders raise OSError, too. Errors of this machine have a number, those of an object store
    # have none: they also prevent a read without a decoder.
    if error.errno is not None:
        return error.strerror or str(error)
    try:
        with landing.open(file.path) as content:
            while content.read(_BLOCK):
                pass
    except OSError as again:
        return str(again)
    return None


def _remedy(address: str, error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "free some memory, or split the file"
    if isinstance(error, PermissionError):
        return f"give this user the right to read it: chmod a+r {shlex.quote(address)}"
    return "see why it cannot be read"
