"""What an address of a folder or file says: the only module that takes one apart.

An address is an absolute path of this machine, or a URI of an object store.
"""

from __future__ import annotations

import re
from pathlib import Path

_SCHEME = "://"
# delta-rs takes a path for a URL: it decodes %41, and reads a backslash as a slash. It refuses
# control characters.
_OTHER_IN_A_URL = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")


def is_uri(address: str) -> bool:
    """Whether an address is that of an object store, not a path of this machine."""
    return _SCHEME in address


def is_address(path: str) -> bool:
    """Whether a path is an address, not one below some folder."""
    return path.startswith("/") or is_uri(path)


def absolute(address: str) -> str:
    """A path as an absolute one; a URI as it is."""
    if is_uri(address):
        return address.rstrip("/")
    return str(Path(address).expanduser().absolute())


def not_for_tables(address: str) -> str | None:
    """The first part of a path of this machine for which no Delta table can be at it, or None."""
    found = None if is_uri(address) else _OTHER_IN_A_URL.search(address)
    return found and found[0]


def parent(address: str) -> str:
    """The address of the folder that holds this one."""
    return address.rpartition("/")[0]


def split_scheme(address: str) -> tuple[str, str]:
    """The scheme with its separator, empty for a path, and the rest."""
    scheme, separator, rest = address.rpartition(_SCHEME)
    return f"{scheme}{separator}", rest


def bucket(uri: str) -> str:
    """The address of the bucket that a URI of an object store is in."""
    scheme, rest = split_scheme(uri)
    return scheme + rest.partition("/")[0]
