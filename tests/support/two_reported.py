"""What the driver of the pipeline of ``several_sources`` reports: ``orders`` is read, ``clicks`` is
not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from headgate.lake.control.driver_reports import (
    Backlog,
    Failure,
    Outage,
    SourceFailure,
    SourceProgress,
    record_failure,
)
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from tests.unit.supervision.conftest import NOW, lease, report

ORDERS = SourceProgress(3, NOW - timedelta(seconds=20), backlog=Backlog("files", 0, 0))
CLICKS = SourceProgress(1, backlog=Backlog("files", 2, 2048))
SINCE = NOW - timedelta(minutes=5)
AWAY = Outage("the folder is gone", SINCE, NOW, attempts=7)
SKIP = "headgate files skip shop 7"
FAILED = SourceFailure("file 7 was rewritten", f"leave it out: {SKIP}", SINCE, (SKIP,))


def report_two(
    layout: Layout, clicks: SourceProgress = CLICKS, *, renewed: datetime = NOW, **more: Any
) -> None:
    """Write the lease and the status of a driver that is alive at the time ``renewed``."""
    lease(layout, Owner.here(), renewed=renewed)
    report(layout, "fused", epoch=1, sources={"orders": ORDERS, "clicks": clicks}, **more)


def report_end(layout: Layout) -> None:
    """The last status is that of a run that could not read ``clicks``, and has ended with this."""
    clicks = replace(CLICKS, failure=FAILED, outage=AWAY)
    report_two(layout, clicks, state="stopped")
    lease(layout, Owner.here(), released=True)
    record_failure(layout, Failure(3, f"source clicks: {FAILED.reason}", FAILED.remedy, NOW))
