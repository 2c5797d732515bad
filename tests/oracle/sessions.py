"""Sessions, by their definition: events of a key in order of time; a pause of more than the gap
begins a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

Event = TypeVar("Event")


def sessions(
    events: Iterable[Event], time: Callable[[Event], datetime], gap: timedelta
) -> list[list[Event]]:
    """The events of one key by session."""
    in_order = sorted(events, key=time)
    if not in_order:
        return []
    found = [[in_order[0]]]
    for before, event in pairwise(in_order):
        if time(event) - time(before) > gap:
            found.append([])
        found[-1].append(event)
    return found


def bounds(
    session: list[Event], time: Callable[[Event], datetime], gap: timedelta
) -> tuple[datetime, datetime]:
    """A session begins with its first event, and ends a gap after its last one."""
    times = [time(event) for event in session]
    return min(times), max(times) + gap
