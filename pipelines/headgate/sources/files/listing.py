"""Decides which files of a landing folder are recorded now: plain functions of two listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.sources.files.declared import FileOrder
from headgate.storage.files import Stat

IGNORED_PREFIXES = (".", "_")
"""Names of files that a producer is still writing and will rename."""

LARGEST_FILE = 1 << 36


@dataclass(frozen=True)
class LandingListing:
    """``ready`` files are recorded, in this order. ``settling`` files must stay unchanged a little
    longer. ``rewritten`` files were recorded with another size or time. ``too_large`` files have
    more positions than offsets can express."""

    ready: tuple[Stat, ...]
    settling: Mapping[str, Stat]
    rewritten: tuple[Stat, ...]
    too_large: tuple[Stat, ...]


def examine(
    found: Iterable[Stat],
    recorded: Mapping[str, tuple[int, datetime]],
    before: Mapping[str, Stat],
    *,
    now: datetime,
    settle: timedelta,
    order: FileOrder,
) -> LandingListing:
    """Classify the files of a listing.

    ``recorded`` maps a path to its recorded size and time. ``before`` has the files that were
    settling in the previous listing. A file is ready when its time is at least ``settle`` ago. A
    file with a time in the future is ready when two successive listings show the same size and
    time.
    """
    ready, settling, rewritten, too_large = [], {}, [], []
    for stat in found:
        if stat.path in recorded:
            if recorded[stat.path] != (stat.size, stat.modified):
                rewritten.append(stat)
        elif stat.size >= LARGEST_FILE:
            too_large.append(stat)
        elif _has_settled(stat, before.get(stat.path), now, settle):
            ready.append(stat)
        else:
            settling[stat.path] = stat
    return LandingListing(
        tuple(in_order(ready, order)),
        settling,
        tuple(rewritten),
        tuple(too_large),
    )


def in_order(files: Iterable[Stat], order: FileOrder) -> list[Stat]:
    """Files in the order in which they are read."""
    return sorted(files, key=_by_name if order == "name" else _by_time)


def _has_settled(stat: Stat, before: Stat | None, now: datetime, settle: timedelta) -> bool:
    if now - stat.modified >= settle:
        return True
    # A time in the future (a skewed clock) is never ``settle`` ago; two equal listings decide.
    return stat.modified > now and stat == before


def _by_name(stat: Stat) -> tuple[str, ...]:
    return (stat.path,)


def _by_time(stat: Stat) -> tuple[datetime, str]:
    return (stat.modified, stat.path)
