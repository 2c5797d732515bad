"""Parses addresses of folders and files. No other module does this.

An address is an absolute path of this machine, or a URI of an object store.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_SCHEME = "://"
# delta-rs reads a path as a URL: it decodes %41, and reads a backslash as a slash. It refuses
# control characters.
_OTHER_IN_A_URL = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")


def is_uri(address: str) -> bool:
    """Whether an address is the URI of an object store, and not a path of this machine."""
    return _SCHEME in address


def is_address(path: str) -> bool:
    """Whether a path is an address, and not relative to a folder."""
    return path.startswith("/") or is_uri(path)


def absolute(address: str) -> str:
    """The absolute path of a path; a URI without slashes at its end."""
    if is_uri(address):
        return address.rstrip("/")
    return str(at_home(address).absolute())


def at_home(path: str) -> Path:
    """A path with ``~`` and ``~NAME`` replaced by the home of this user, or of another. They stay
    as they are if there is no such user, or no home: they may be the name of a file."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def not_for_tables(address: str) -> str | None:
    """The first characters in a path of this machine that prevent a Delta table at this path; None
    if there are none, or for a URI."""
    found = None if is_uri(address) else _OTHER_IN_A_URL.search(address)
    return found and found[0]


def parent(address: str) -> str:
    """The address of the folder that contains this one."""
    return address.rpartition("/")[0]


def overlap(one: str, other: str) -> bool:
    """Whether one of two folders contains the other, or both are the same folder. Links are
    followed."""
    a, b = (f"{_real(address).rstrip('/')}/" for address in (one, other))
    return a.startswith(b) or b.startswith(a)


def _real(address: str) -> str:
    scheme, rest = split_scheme(address)
    if not scheme or scheme == "file://":
        return os.path.realpath(rest)
    same = scheme.replace("s3a:", "s3:").replace("s3n:", "s3:")
    return same + re.sub("/+", "/", rest.partition("?")[0])


def split_scheme(address: str) -> tuple[str, str]:
    """The scheme with its separator, and the rest. The scheme is empty for a path."""
    scheme, separator, rest = address.rpartition(_SCHEME)
    return f"{scheme}{separator}", rest


def bucket(uri: str) -> str:
    """The address of the bucket that a URI of an object store is in."""
    scheme, rest = split_scheme(uri)
    return scheme + rest.partition("/")[0]
