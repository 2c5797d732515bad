"""Loads: history that bronze takes in beside the live source.

History comes before all that the source has sent, and so do its positions: the records of load k
have the partitions of the source's own log, at offsets in [-k * 2^56, -(k - 1) * 2^56). So ids are
known across both, and equal times are in the order in which history would have come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate import exit_codes
from headgate.errors import HeadgateError

_BITS = 56
MOST_LOADS = 127
"""Of one source: offsets have 64 bits."""
MOST_OFFSET = (1 << _BITS) - 1
"""The greatest offset that a loaded record may have by itself."""


@dataclass(frozen=True)
class Load:
    """A load as of bronze's last commit for it, batch ``n``. ``offsets`` is where it continues,
    ``rows`` how many records it has brought. ``id`` is the request's, ``reason`` says who asked for
    it, and why."""

    id: str
    number: int
    n: int
    offsets: Mapping[str, int]
    rows: int
    reason: str

    @property
    def shift(self) -> int:
        return shift_of(self.number)


class TooManyLoadsError(HeadgateError, code=exit_codes.USAGE):
    """No further load of a source has a place among the offsets."""


def next_number(loads: Sequence[Load]) -> int:
    """The number of a new load. Raises TooManyLoadsError."""
    number = max((load.number for load in loads), default=0) + 1
    if number > MOST_LOADS:
        raise TooManyLoadsError(
            f"a source has at most {MOST_LOADS} loads, and this one has had them",
            remedy="put the history into the landing folder or the topic",
        )
    return number


def shift_of(number: int) -> int:
    """What is added to the offsets of a load's records."""
    return -(number << _BITS)


def span_of(number: int) -> tuple[int, int]:
    """The first and the last offset that a load's records may have."""
    first = shift_of(number)
    return first, first + MOST_OFFSET
