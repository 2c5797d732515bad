"""How far a load has got."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.kinds import BRONZE
from headgate.history.loads.requests import LoadRequest
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class LoadState:
    """``state`` is ``reading``, ``folding`` (late rows into final ones), ``waiting`` (until bronze
    is rebuilt), ``taken back`` (by a restore, after it was done), ``paused``, ``cancelled``,
    ``stopped`` (by an error, which ``why`` describes) or ``done``. ``read`` of ``total`` are in
    bronze, in ``unit``; ``rows`` is the number of records in bronze so far."""

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

    @property
    def is_undone(self) -> bool:
        return self.state not in ("done", "taken back", "cancelled")


def load_of(layout: Layout, pipeline: str, request: LoadRequest) -> Load | None:
    """What bronze has of a load. Raises FileNotFoundError if there is no bronze."""
    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=pipeline)
    return BronzePayload.of(bronze.refresh()).load(request.id)


def state_of(layout: Layout, pipeline: str, request: LoadRequest) -> LoadState:
    """The state of a load. Raises as ``load_of``."""
    load = load_of(layout, pipeline, request)
    return LoadState(
        id=request.id,
        what=request.plan.what,
        unit=request.plan.unit,
        state=_word(request, load),
        why=request.why if request.wish == "stopped" else "",
        read=request.read(load),
        total=request.total,
        rows=load.rows if load else 0,
        reason=request.reason,
    )


def _word(request: LoadRequest, load: Load | None) -> str:
    if request.wish == "open":
        return "folding" if request.is_read(load) and request.until is None else "reading"
    if request.wish in ("done", "taken back"):
        return "done" if request.is_read(load) else "taken back"
    return request.wish
