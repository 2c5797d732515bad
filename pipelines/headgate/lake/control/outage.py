"""Outages of what a driver reads from, as its status document records them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.declaration.quantities import plural, span


@dataclass(frozen=True)
class Outage:
    """Something that a driver needs does not answer, and the driver tries again. ``what`` is a
    message about it. ``since`` is when the first attempt without an answer began, ``tried`` when
    the last one failed; ``attempts`` have failed in a row. ``is_of_load``: only the history of a
    load does not answer, and the stream goes on."""

    what: str
    since: datetime
    tried: datetime
    attempts: int = 1
    is_of_load: bool = False

    def lasts(self, now: datetime) -> timedelta:
        return max(now - self.since, timedelta())

    def said(self, now: datetime) -> str:
        """A message, such as "no answer from the brokers a:9092, for 2 min (5 attempts); the driver
        keeps trying"."""
        attempts = plural(self.attempts, "attempt")
        return f"{self.what}, for {span(self.lasts(now))} ({attempts}); the driver keeps trying"


def combined_outage(outages: Iterable[Outage | None]) -> Outage | None:
    """Several outages at the same time as one; None if there is none."""
    found = [outage for outage in outages if outage is not None]
    if not found:
        return None
    return Outage(
        "; ".join(dict.fromkeys(outage.what for outage in found)),
        since=min(outage.since for outage in found),
        tried=max(outage.tried for outage in found),
        attempts=max(outage.attempts for outage in found),
        is_of_load=all(outage.is_of_load for outage in found),
    )
