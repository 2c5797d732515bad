"""How far a load has got."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.kinds import BRONZE
from headgate.loads.requests import LoadRequest
from headgate.storage.layout import Layout
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.table import Table


@dataclass(frozen=True)
class LoadState:
    """``state`` is ``reading``, ``folding`` (late rows into final ones), or what a person or an
    error has made of the load; then ``why`` says it. ``read`` of ``total`` are in bronze, in
    ``unit``, and ``rows`` records so far."""

    id: str
    what: str
    unit: str
    state: str
    why: str
    read: int
    total: int
    rows: int
    reason: str

    @property
    def is_open(self) -> bool:
        return self.state in ("reading", "folding")


def state_of(layout: Layout, pipeline: str, request: LoadRequest) -> LoadState:
    """Reads bronze's newest commit. Raises FileNotFoundError if there is no bronze."""
    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=pipeline)
    load = BronzePayload.of(bronze.refresh()).load(request.id)
    doing = "folding" if request.is_read(load) else "reading"
    return LoadState(
        id=request.id,
        what=request.plan.what,
        unit=request.plan.unit,
        state=doing if request.wish == "open" else request.wish,
        why=request.why if request.wish == "stopped" else "",
        read=request.read(load),
        total=request.total,
        rows=load.rows if load else 0,
        reason=request.reason,
    )
