"""Loads: history that bronze ingests beside the live source.

History is before everything that the source has sent, so its positions are lower: the records of
load k have the partitions of the source's own log, at offsets in [-k * 2^56, -(k - 1) * 2^56). So
duplicates are found across both, and records with equal times are in the order that they would have
if the source had sent the history first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate import exit_codes
from headgate.errors import HeadgateError

LOG_BITS = 56
"""The offsets of the stream and of each load differ in the bits above these."""
MOST_LOADS = 127
"""The most loads that one source can have: offsets have 64 bits."""
MOST_OFFSET = (1 << LOG_BITS) - 1
"""The greatest offset that a loaded record may have before its load's shift is added."""


@dataclass(frozen=True)
class Load:
    """A load as of bronze's last commit for it, batch ``n``. ``offsets`` is where it continues,
    ``rows`` how many of its records bronze has ingested. ``id`` is the id of the request."""

    id: str
    number: int
    n: int
    offsets: Mapping[str, int]
    rows: int

    @property
    def shift(self) -> int:
        return shift_of(self.number)


class TooManyLoadsError(HeadgateError, code=exit_codes.USAGE):
    """A source has as many loads as its offsets allow."""


def next_number(numbers: Iterable[int]) -> int:
    """The number of a new load of a source, after those of its earlier ones. Raises
    TooManyLoadsError."""
    number = max(numbers, default=0) + 1
    if number > MOST_LOADS:
        raise TooManyLoadsError(
            f"a source can have at most {MOST_LOADS} loads, and this one has had {MOST_LOADS}",
            remedy="put the history into the landing folder or the topic",
        )
    return number


def shift_of(number: int) -> int:
    """What is added to the offsets of a load's records."""
    return -(number << LOG_BITS)


def span_of(number: int) -> tuple[int, int]:
    """The first and the last offset that a load's records may have."""
    first = shift_of(number)
    return first, first + MOST_OFFSET
