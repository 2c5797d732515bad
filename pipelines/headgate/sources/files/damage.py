"""Finds the file that made a batch fail by reading each file to its end."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.declaration.model import RecordFormat
from headgate.sources.errors import FileNotReachedError
from headgate.sources.files.log import LoggedFile
from headgate.storage.files import Storage

_CHUNK = 1 << 20


def unreadable(
    landing: Storage, format: RecordFormat, files: Iterable[LoggedFile]
) -> dict[LoggedFile, str]:
    """The files that cannot be read, each with the reason.

    Raises FileNotReachedError if the cause is not in the file: setting it aside would lose it.
    """
    found = {}
    for file in files:
        if ":" in file.path.rpartition("/")[2]:
            found[file] = "a colon in a file's name: Spark cannot open it; give it another name"
            continue
        try:
            _read_through(landing, format, file.path)
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


def _read_through(landing: Storage, format: RecordFormat, path: str) -> None:
    with landing.open(path) as raw:
        if format == "parquet":
            for _ in pq.ParquetFile(raw).iter_batches():
                pass
        else:
            stream = gzip.open(raw) if path.endswith(".gz") else raw
            while stream.read(_CHUNK):
                pass
