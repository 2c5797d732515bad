"""What is asked about a stream's health and how bad an answer may be; DAG files may import it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

Check = Literal["freshness", "backlog", "input", "event_time", "late", "quarantine", "ledger"]
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True)
class Limits:
    """``freshness`` is how long ago gold may have been level with the source, ``backlog`` how long
    the oldest unread record of a topic may have been there, ``files`` how many may wait in a
    landing folder. ``late`` and ``quarantined`` are shares of what came within ``recent``. How
    often input is expected, and how recent events, differs by source: declarations say so."""

    freshness: timedelta = timedelta(minutes=10)
    backlog: timedelta = timedelta(minutes=15)
    files: int = 1_000
    late: float = 0.05
    quarantined: float = 0.05
    recent: timedelta = timedelta(hours=1)
