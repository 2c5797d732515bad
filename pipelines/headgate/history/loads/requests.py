"""The request of a load: a document, and a folder beside it for what the source keeps.

Only bronze's commits record how far a load has got. So after a crash, or after the restore of a
savepoint, a load continues where its tables are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from headgate.declaration.kinds import BRONZE
from headgate.flow.sources.loading import LoadPlan
from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table

FOLDER = f"{CONTROL}/loads"

Wish = Literal["open", "paused", "cancelled", "stopped", "done", "taken back"]


@dataclass(frozen=True)
class LoadRequest:
    """``share`` is the part of the driver's time that the load may take while the stream has input,
    ``rate`` the most records per second. ``wish`` is the state that is wanted for the load. It is
    ``stopped`` after an error, which ``why`` describes, and ``taken back`` if a restore came after
    it was done. ``until`` is set while a load that had not reached its end is read again: the
    offsets up to which bronze had it. ``then`` is its ``wish`` after that."""

    id: str
    source: str
    plan: LoadPlan
    reason: str
    at: datetime
    share: float = 0.5
    rate: int | None = None
    wish: Wish = "open"
    why: str = ""
    until: Mapping[str, int] | None = None
    then: Wish = "done"

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.id}/load.json"

    @property
    def ends(self) -> Mapping[str, int]:
        """The offsets at which reading ends for now."""
        return self.plan.ends if self.until is None else self.until

    @property
    def total(self) -> int:
        """How much the load has to read, in the plan's unit."""
        return sum(end - self.plan.begins.get(at, 0) for at, end in self.ends.items())

    def read(self, load: Load | None) -> int:
        """How much of the load bronze has, in the plan's unit."""
        reached = self.plan.begins if load is None else load.offsets
        return sum(reached[at] - self.plan.begins.get(at, 0) for at in self.ends)

    def is_read(self, load: Load | None) -> bool:
        """Whether bronze has all of the load."""
        return self.read(load) >= self.total


def load_folder(layout: Layout, id_: str) -> Storage:
    """The folder in which a source keeps what it needs for a load."""
    return layout.storage.at(f"{FOLDER}/{id_}")


def write_request(layout: Layout, request: LoadRequest) -> None:
    """Write a request, new or changed."""
    write_document(layout.storage, request.path, encoded(request))


def change_request(layout: Layout, request: LoadRequest, **changes: Any) -> LoadRequest:
    """Write a stored request with some changes. Other changes that were stored since are kept."""
    changed = replace(find_request(layout, request.id) or request, **changes)
    write_request(layout, changed)
    return changed


def find_request(layout: Layout, id_: str) -> LoadRequest | None:
    """Raises DamagedDocumentError."""
    return read_value(layout.storage, f"{FOLDER}/{id_}/load.json", LoadRequest)


def all_requests(layout: Layout) -> tuple[LoadRequest, ...]:
    """All loads that were ever requested, oldest first. Raises DamagedDocumentError."""
    found = (find_request(layout, id_) for id_ in layout.storage.folders(FOLDER))
    asked = (request for request in found if request is not None)
    return tuple(sorted(asked, key=lambda request: (request.at, request.id)))


def next_open_request(requests: Iterable[LoadRequest]) -> LoadRequest | None:
    """The load that a driver carries out: one at a time, the oldest first."""
    return next((request for request in requests if request.wish == "open"), None)


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
    source: str

    @property
    def is_open(self) -> bool:
        return self.state in ("reading", "folding")

    @property
    def is_undone(self) -> bool:
        return self.state not in ("done", "taken back", "cancelled")


def load_in_bronze(layout: Layout, pipeline: str, request: LoadRequest) -> Load | None:
    """What bronze has of a load. Raises FileNotFoundError if there is no bronze."""
    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=pipeline)
    return BronzePayload.of(bronze.refresh()).load(request.id)


def load_state(layout: Layout, pipeline: str, request: LoadRequest) -> LoadState:
    """The state of a load. Raises as ``load_in_bronze``."""
    load = load_in_bronze(layout, pipeline, request)
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
        source=request.source,
    )


def _word(request: LoadRequest, load: Load | None) -> str:
    if request.wish == "open":
        return "folding" if request.is_read(load) and request.until is None else "reading"
    if request.wish in ("done", "taken back"):
        return "done" if request.is_read(load) else "taken back"
    return request.wish
