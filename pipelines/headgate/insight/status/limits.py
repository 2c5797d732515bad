"""The health checks and their limits. DAG files may import this module."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

Check = Literal[
    "freshness",
    "outage",
    "source",
    "backlog",
    "input",
    "event_time",
    "late",
    "quarantine",
    "set_aside",
    "gate",
    "breaker",
    "publications",
    "ledger",
]
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True)
class Limits:
    """``freshness``: how long a driver may neither complete a batch nor be up to date with its
    input. ``outage``: how long its sources may not answer. ``backlog``: how old the oldest unread
    record of a topic may be. ``files``: how many unread files a landing folder may have. ``late``
    and ``quarantined``: shares of the input within ``recent``. ``latency``: how long a record may
    take from its arrival to gold. ``publication``: how long rows may wait for their sink. Only
    alerts use ``latency``. The expected interval of input and age of events are set in the
    declaration of the source."""

    freshness: timedelta = timedelta(minutes=10)
    outage: timedelta = timedelta(minutes=1)
    backlog: timedelta = timedelta(minutes=15)
    files: int = 1_000
    late: float = 0.05
    quarantined: float = 0.05
    recent: timedelta = timedelta(hours=1)
    latency: timedelta = timedelta(minutes=5)
    publication: timedelta = timedelta(minutes=15)
