"""Decides which errors of files and object stores are outages: they end by themselves, and what
failed is tried again. All other errors need a person."""

from __future__ import annotations

import errno
import os
import re

from headgate.errors import chain, said_by

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
