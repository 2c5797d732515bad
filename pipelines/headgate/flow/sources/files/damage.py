"""Finds the files that made a batch fail: reads each file to its end."""

from __future__ import annotations

import io
import shlex
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.errors import cause_of
from headgate.flow.sources.errors import FileNotReachedError
from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.landing import LandingAwayError, is_outage
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage


def unreadable(
    landing: Storage, source: FilesSource, files: Iterable[LoggedFile]
) -> dict[LoggedFile, str]:
    """The files that cannot be read, each with the reason.

    Raises LandingAwayError or FileNotReachedError if the cause is not in the file: setting it aside
    would lose it.
    """
    found = {}
    for file in files:
        outside, damage = _failure(landing, source, file)
        if outside is not None:  # it may have passed
            outside, damage = _failure(landing, source, file)
        # A file that is gone: the next attempt finds out whether its folder is there.
        if outside is not None and (is_outage(outside) or isinstance(outside, FileNotFoundError)):
            raise LandingAwayError(
                f"{landing.uri(file.path)}: {_cause(outside)}",
                remedy=f"{_remedy(landing.uri(file.path), outside)}",
            ) from outside
        if outside is not None:
            raise FileNotReachedError(
                f"{landing.uri(file.path)}: {_cause(outside)}; the file is recorded as sequence "
                f"{file.sequence}, and nothing is read past it",
                remedy=f"{_remedy(landing.uri(file.path), outside)}; then start again",
            ) from outside
        if damage is not None:
            is_told = isinstance(damage, WrongContentError)
            found[file] = str(damage) if is_told else f"{type(damage).__name__}: {damage}"
    return found


def _failure(
    landing: Storage, source: FilesSource, file: LoggedFile
) -> tuple[Exception | None, Exception | None]:
    """Read a file to its end. Returns the error if its cause is not in the content of the file,
    and the error if it is."""
    observed = _Observed(landing.root)
    try:
        for part in parts_of_files(observed, source, [file]):
            for _ in part.blocks():
                pass
    except MemoryError as error:  # pa.ArrowMemoryError is one
        return error, None
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        # Decoders raise OSError, too, and may turn a failed read into an error of their own.
        return (observed.failures[0], None) if observed.failures else (None, error)
    return None, None


@dataclass(frozen=True)
class _Observed(Storage):
    """Notes each failure to open or read a file. A decoder has no part in these."""

    failures: list[OSError] = field(default_factory=list)

    def open(self, path: str) -> Any:
        with self.noting():
            return _ObservedFile(super().open(path), self)

    @contextmanager
    def noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failures.append(error)
            raise


class _ObservedFile(io.RawIOBase):
    def __init__(self, file: pa.NativeFile, observed: _Observed) -> None:
        self._file, self._observed = file, observed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        with self._observed.noting():
            return int(self._file.readinto(buffer))

    def close(self) -> None:
        self._file.close()
        super().close()


def _cause(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is too little memory to read it"
    return cause_of(error)


def _remedy(address: str, error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "free some memory, or split the file"
    if isinstance(error, PermissionError):
        return f"give this user the right to read it: chmod a+r {shlex.quote(address)}"
    return "see why it cannot be read"
