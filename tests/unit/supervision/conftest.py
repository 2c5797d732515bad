from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.ownership import LAYERS, Owner, lease_path
from headgate.lake.storage.documents import write_document
from headgate.lake.storage.layout import Layout

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TWO_FILES = Backlog("files", 2, 1000)


def lease(
    layout: Layout,
    owner: Owner,
    *,
    epoch: int = 1,
    layers: tuple[str, ...] = LAYERS,
    released: bool = False,
    renewed: datetime = NOW - timedelta(seconds=3),
) -> None:
    """Write the leases of a driver that holds these layers."""
    for layer in layers:
        content: dict[str, Any] = {
            **vars(owner),
            "epoch": epoch,
            "released": released,
            "restarts": 0,
        }
        content |= {"since": (NOW - timedelta(hours=1)).isoformat(), "renewed": renewed.isoformat()}
        write_document(layout.storage, lease_path(layer), content)


def report(
    layout: Layout,
    job: str,
    *,
    epoch: int,
    n: int,
    backlog: Backlog = TWO_FILES,
    **more: Any,
) -> None:
    """Write the status of a job after a batch."""
    content: dict[str, Any] = {
        "state": "running",
        "epoch": epoch,
        "n": n,
        "rows": 5,
        "seconds": 1.5,
        "trouble": None,
    }
    content |= {"backlog": asdict(backlog)}
    content |= {"watermark": NOW.isoformat(), "updated": NOW.isoformat(), "totals": {}}
    content |= {k: v.isoformat() if isinstance(v, datetime) else v for k, v in more.items()}
    write_document(layout.storage, Layout.document(f"status-{job}"), content)
