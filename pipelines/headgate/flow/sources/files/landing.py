"""Checks the landing folder before Spark starts, and tells outages of storage from other errors."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import cause_of, chain, said_by
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.files.declared import FilesSource
from headgate.lake.storage.files import Storage
from headgate.lake.storage.places import bucket, is_uri, overlap

PUT_BACK = "put it back, or mount its disk"


class LandingError(SourceError):
    """The landing folder is missing or cannot be listed."""


class LandingAwayError(SourceUnreachableError):
    """The disk, the network folder or the object store of a landing folder is away."""


@contextmanager
def reaching(folder: str) -> Iterator[None]:
    """Raises LandingAwayError instead of an error of the system that may pass, and LandingError
    instead of any other."""
    try:
        yield
    except OSError as error:
        said = f"the landing folder {folder} cannot be read: {_cause(error, folder)}"
        if is_outage(error):
            look = "see whether the object store answers"
            if not is_uri(folder):
                look = f"see whether it is there: ls {shlex.quote(folder)}"
            raise LandingAwayError(said, look) from error
        raise LandingError(said, "correct the folder, or what this user may read in it") from error


def _cause(error: OSError, folder: str) -> str:
    where = error.filename
    what = cause_of(error)
    return what if where in (None, folder) else f"{what}: {where}"


def require_landing(reads: FilesSource, declaration: Path, *, was_there: bool = False) -> None:
    """Raises LandingError if the landing folder does not exist or cannot be listed. If a driver has
    listed it before (``was_there``), a folder that does not exist is away: then it raises
    LandingAwayError."""
    if not _is_missing(reads, declaration):
        return
    if was_there:
        raise LandingAwayError(f"there is no landing folder {reads.path}", PUT_BACK)
    raise LandingError(
        f"there is no landing folder {reads.path}",
        f"mkdir -p {shlex.quote(reads.path)}\nor correct its path in {declaration}",
    )


def require_apart(folder: str, root: str, remedy: str) -> None:
    """Raises LandingError if a folder of files to read overlaps the root of the lake: the tables
    would be read as input, or their files would lie between those of a producer."""
    if overlap(folder, root):
        raise LandingError(
            f"the folder of files {folder} and the root of the tables {root} overlap: neither may "
            "be in the other, nor may they be the same",
            remedy,
        )


def _is_missing(reads: FilesSource, declaration: Path) -> bool:
    """Whether there is no landing folder. Raises LandingError if it is not a folder or cannot be
    listed."""
    folder, remedy = Path(reads.path), f"correct the folder, or its path in {declaration}"
    if is_uri(reads.path):
        _require_bucket(reads.path, remedy)
        return False
    with reaching(reads.path):
        is_there = folder.is_dir()
    if is_there:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise LandingError(f"the landing folder {folder} may not be listed", remedy)
        return False
    if folder.exists():
        raise LandingError(f"the landing folder {folder} is a file", remedy)
    return True


def _require_bucket(address: str, remedy: str) -> None:
    """Raises LandingError if the bucket is missing or cannot be reached. A folder in a bucket may
    be missing: it exists once it has a file. A missing bucket would always look like an empty
    folder."""
    try:
        is_there = Storage(address).exists("")
    except (OSError, ValueError) as error:
        said = f"the landing folder {address} cannot be reached: {error}"
        raise (LandingAwayError if is_outage(error) else LandingError)(said, remedy) from error
    if not is_there and not _may_have(bucket(address)):
        raise LandingError(f"there is no bucket for the landing folder {address}", remedy)


def _may_have(address: str) -> bool:
    """Whether there is a bucket. Also true if this is unknown: the user may have rights for only
    a folder."""
    try:
        return Storage(address).exists("")
    except OSError:
        return True


_AWAY = frozenset(
    {
        errno.EIO,
        errno.ESTALE,
        errno.ENODEV,
        errno.ENXIO,
        errno.EREMOTEIO,
        errno.ENOLINK,
        errno.ESHUTDOWN,
        errno.ETIMEDOUT,
        errno.ENOTCONN,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENETRESET,
        errno.EAGAIN,
        errno.EINTR,
    }
)
"""What a disk, a network folder or a server that is away answers."""
_TEXTS = frozenset(map(os.strerror, _AWAY))
_STORE_AWAY = re.compile(
    # Arrow reports errors of object stores in words: S3, its HTTP client, Google, Azure.
    r"AWS Error (?:NETWORK_CONNECTION|REQUEST_TIMEOUT|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING"
    r"|INTERNAL_FAILURE|REQUEST_EXPIRED)|curlCode: (?:5|6|7|28|35|52|55|56),"
    r"|HTTP response code (?:429|500|502|503|504)\b"
    r"|\b(?:UNAVAILABLE|DEADLINE_EXCEEDED|ServerBusy|OperationTimedOut)\b"
)


def is_outage(error: BaseException) -> bool:
    """Whether an error of reading says that a disk, a folder of the network or an object store is
    away."""
    return any(_is_away(each) for each in chain(error) if isinstance(each, OSError))


def _is_away(error: OSError) -> bool:
    if error.errno is not None:
        return error.errno in _AWAY
    said = said_by(error)
    return any(text in said for text in _TEXTS) or _STORE_AWAY.search(said) is not None
