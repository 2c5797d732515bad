"""Decides which files of a landing folder are recorded now: plain functions of two listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter

from headgate.flow.sources.files.changes import FileChange, change_of
from headgate.flow.sources.files.declared import FileOrder
from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.storage.files import Stat

IGNORED_PREFIXES = (".", "_")
"""Names of files that a producer is still writing and will rename."""

LARGEST_FILE = 1 << 36


@dataclass(frozen=True)
class LandingListing:
    """``ready`` files are recorded, in this order. ``settling`` files must stay unchanged a little
    longer. ``changes`` are of files that were recorded with another size or time. ``too_large``
    files have more positions than offsets can express."""

    ready: tuple[Stat, ...]
    settling: Mapping[str, Stat]
    changes: tuple[FileChange, ...]
    too_large: tuple[Stat, ...]


def examine(
    found: Iterable[Stat],
    recorded: Mapping[str, LoggedFile],
    before: Mapping[str, Stat],
    *,
    now: datetime,
    settle: timedelta,
    order: FileOrder,
) -> LandingListing:
    """Classify the files of a listing.

    ``recorded`` has the recorded files by path. ``before`` has the files that were
    settling in the previous listing. A file is ready when its time is at least ``settle`` ago. A
    file with a time in the future is ready when two successive listings show the same size and
    time.
    """
    ready, settling, changes, too_large = [], {}, [], []
    for stat in found:
        if (file := recorded.get(stat.path)) is not None:
            if (difference := change_of(file, stat)) is not None:
                changes.append(difference)
        elif stat.size >= LARGEST_FILE:
            too_large.append(stat)
        elif _has_settled(stat, before.get(stat.path), now, settle):
            ready.append(stat)
        else:
            settling[stat.path] = stat
    return LandingListing(
        tuple(in_order(ready, order)),
        settling,
        tuple(sorted(changes, key=attrgetter("file.sequence"))),
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
