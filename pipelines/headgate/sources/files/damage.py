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
            # Decoders raise OSError too, but only system errors have an errno.
            if isinstance(error, OSError) and error.errno is not None:
                raise FileNotReachedError(
                    f"{landing.uri(file.path)}: {error.strerror or error}; the file is "
                    f"recorded as sequence {file.sequence}, and nothing is read past it",
                    remedy=f"give this user the right to read it: chmod a+r "
                    f"{shlex.quote(landing.uri(file.path))}; then start again",
                ) from error
            found[file] = f"{type(error).__name__}: {error}"
    return found
