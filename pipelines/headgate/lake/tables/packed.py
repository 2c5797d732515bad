"""Lists that only grow, and that every commit of a table repeats.

A commit has each ``PACK`` entries as one compressed text, and only the entries after them as JSON
objects. A text is the same in all commits, so it is unpacked once.
"""

from __future__ import annotations

import json
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

PACK = 64
"""The entries of a pack. Packs of other sizes can be read, too."""
_CACHED_PACKS = 8192

Entry = TypeVar("Entry")


class Packed(tuple[Entry, ...], Generic[Entry]):
    """The entries, which are dataclasses of JSON values. ``packs`` are texts of the first ones, and
    ``rest`` are the entries after these."""

    packs: tuple[str, ...]
    rest: tuple[Entry, ...]

    @staticmethod
    def of(entries: Iterable[Entry]) -> Packed[Entry]:
        if isinstance(entries, Packed):
            return entries
        found = tuple(entries)
        whole = len(found) - len(found) % PACK
        packs = tuple(_pack(found[at : at + PACK]) for at in range(0, whole, PACK))
        return _packed(found, packs, found[whole:])

    @staticmethod
    def decode(kind: type[Entry], content: Sequence[Any]) -> Packed[Entry]:
        """Raises TypeError or ValueError if ``content`` is not a result of ``encode``."""
        packs = tuple(sys.intern(each) for each in content if isinstance(each, str))
        rest = tuple(kind(**each) for each in content[len(packs) :])
        make: Callable[..., Any] = kind
        unpacked = (entry for pack in packs for entry in _unpacked(make, pack))
        return _packed((*unpacked, *rest), packs, rest)

    def encode(self) -> list[Any]:
        """JSON values: the packs, then the entries after them."""
        return [*self.packs, *map(vars, self.rest)]


def _packed(
    entries: tuple[Entry, ...], packs: tuple[str, ...], rest: tuple[Entry, ...]
) -> Packed[Entry]:
    made = Packed(entries)
    made.packs, made.rest = packs, rest
    return made


def _pack(entries: Sequence[Any]) -> str:
    text = json.dumps([vars(each) for each in entries], separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()


@lru_cache(_CACHED_PACKS)
def _unpacked(make: Callable[..., Any], pack: str) -> tuple[Any, ...]:
    try:
        content = json.loads(zlib.decompress(b64decode(pack, validate=True)))
    except zlib.error as error:
        raise ValueError(f"a packed list cannot be read: {error}") from error
    return tuple(make(**each) for each in content)
