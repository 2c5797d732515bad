from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.lake.control.driver_reports import Backlog, SourceProgress
from headgate.lake.control.ownership import LAYERS, Owner, lease_path
from headgate.lake.storage.documents import encoded, write_document
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
    n: int = 0,
    backlog: Backlog | None = TWO_FILES,
    source: str = "b",
    sources: Mapping[str, SourceProgress] | None = None,
    **more: Any,
) -> None:
    """Write the status of a job after a batch. Without ``sources``, it has one ``source``."""
    content: dict[str, Any] = {
        "state": "running",
        "epoch": epoch,
        "rows": 5,
        "seconds": 1.5,
        "trouble": None,
    }
    content |= {"updated": NOW.isoformat(), "totals": {}}
    of_source = {field.name for field in fields(SourceProgress)} & {*more}
    about = {"watermark": NOW, **{name: more.pop(name) for name in of_source}}
    sources = sources or {source: SourceProgress(n=n, backlog=backlog, **about)}
    content["sources"] = {name: encoded(each) for name, each in sources.items()}
    content |= {k: v.isoformat() if isinstance(v, datetime) else v for k, v in more.items()}
    write_document(layout.storage, Layout.document(f"status-{job}"), content)
