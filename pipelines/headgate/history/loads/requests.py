"""Loads of history, as they are decided: each begins with a request, and later requests change it.

Only bronze's commits record how far a load has got. So after a crash, or after the restore of a
savepoint, a load continues where its tables are. A source keeps what it needs for a load in a
folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from headgate.declaration.kinds import BRONZE
from headgate.flow.sources.loading import LoadPlan
from headgate.lake.control.requests import Request, waiting_requests
from headgate.lake.storage.documents import decoded, encoded
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.decisions import (
    LOAD,
    LOAD_CHANGE,
    RESET,
    ControlTable,
    Decision,
    Decisions,
    Position,
)
from headgate.lake.tables.load import Load, next_number
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table

FOLDER = f"{CONTROL}/loads"

Wish = Literal["open", "paused", "cancelled", "stopped", "done", "taken back"]


UNDONE: tuple[Wish, ...] = ("open", "paused", "stopped")
"""The wishes of a load that has not ended."""


@dataclass(frozen=True)
class LoadRequest:
    """``number`` is that of the load among those of its source; 0 while the request waits.
    ``share`` is the part of the driver's time that the load may take while the stream has input,
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
    number: int = 0
    wish: Wish = "open"
    why: str = ""
    until: Mapping[str, int] | None = None
    then: Wish = "done"

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

    def document(self) -> dict[str, Any]:
        """The document of a request for it."""
        told = ("source", "plan", "reason", "share", "rate")
        return {name: value for name, value in encoded(self).items() if name in told}


def load_folder(layout: Layout, id_: str) -> Storage:
    """The folder in which a source keeps what it needs for a load."""
    return layout.storage.at(f"{FOLDER}/{id_}")


def loads_of(decisions: Decisions, waiting: Iterable[Request] = ()) -> tuple[LoadRequest, ...]:
    """All loads that were ever requested, oldest first, with the changes of them. ``waiting`` are
    requests that may be decided already."""
    found: dict[str, LoadRequest] = {}
    saved = {row.document["decision"] for row in decisions.of(RESET)}
    wishes: dict[int, dict[str, Wish]] = {0: {}}
    for row in decisions.rows:
        if row.kind == LOAD:
            found[str(row.request)] = _begun(str(row.request), row.document, row.at)
        elif row.kind == LOAD_CHANGE:
            _change(found, row.document)
        elif row.kind == RESET and (last := row.document["decision"]) is not None:
            found = _after_restore(found, row.document["back_to"], wishes.get(last, {}))
        if row.number in saved:
            wishes[row.number] = {id_: load.wish for id_, load in found.items()}
    for request in waiting:
        if decisions.decided(request.id) is None:
            if request.kind == LOAD:
                found[request.id] = _begun(request.id, request.document, request.at)
            elif request.kind == LOAD_CHANGE:
                _change(found, request.document)
    return tuple(found.values())


def _begun(id_: str, document: Mapping[str, Any], at: datetime) -> LoadRequest:
    plan = decoded(document["plan"], LoadPlan)
    return LoadRequest(**{**document, "id": id_, "at": at, "plan": plan})


def _change(found: dict[str, LoadRequest], document: Mapping[str, Any]) -> None:
    if (load := found.get(document["load"])) is not None:
        found[load.id] = replace(load, **document["changes"])


def _after_restore(
    found: Mapping[str, LoadRequest], back_to: Mapping[str, Any], before: Mapping[str, Wish]
) -> dict[str, LoadRequest]:
    """The loads after the restore of a savepoint together with the bronze tables of ``back_to``: a
    load that was done after the savepoint is taken back. ``before`` has the wishes at the
    savepoint. An open load continues from what bronze has."""

    def after(load: LoadRequest) -> LoadRequest:
        if load.source not in back_to or load.wish not in ("done", "taken back"):
            return load
        return replace(load, wish="done" if before.get(load.id) == "done" else "taken back")

    return {id_: after(load) for id_, load in found.items()}


def all_loads(layout: Layout, pipeline: str) -> tuple[LoadRequest, ...]:
    """As ``loads_of``, now. Raises DamagedDocumentError, LogGapError."""
    waiting = waiting_requests(layout)  # read before the decisions: a decided one is removed
    return loads_of(ControlTable.of(layout.storage, pipeline).refresh(), waiting)


def find_load(layout: Layout, pipeline: str, id_: str) -> LoadRequest | None:
    return next((each for each in all_loads(layout, pipeline) if each.id == id_), None)


def number_after(loads: Iterable[LoadRequest], source: str) -> int:
    """The number of the next load of a source. Raises TooManyLoadsError."""
    return next_number(each.number for each in loads if each.source == source)


def decide_load(
    control: ControlTable, request: Request, position: Position, now: datetime
) -> Decision:
    """Decide on a load that begins. Raises TooManyLoadsError, CommitRefusedError, FencedError."""
    number = number_after(loads_of(control.known), request.document["source"])
    document = {**request.document, "number": number}
    return control.append(LOAD, document, position, now, request=request.id)


def decide_load_change(
    control: ControlTable,
    load: str,
    changes: Mapping[str, Any],
    position: Position,
    now: datetime,
    request: str | None = None,
) -> Decision:
    """Decide on a change of a load: new values of fields of ``LoadRequest``. Raises
    CommitRefusedError, FencedError."""
    document = {"load": load, "changes": dict(changes)}
    return control.append(LOAD_CHANGE, document, position, now, request=request)


def applies(changes: Mapping[str, Any], load: LoadRequest | None) -> bool:
    """Whether the changes that a person has requested still apply. A load that has ended meanwhile
    is not paused or cancelled: if bronze is read again, its late rows must be folded again."""
    return load is not None and (changes["wish"] == "open" or load.wish in UNDONE)


def next_open_load(loads: Iterable[LoadRequest]) -> LoadRequest | None:
    """The load that a driver carries out: one at a time, the oldest first."""
    return next((load for load in loads if load.wish == "open"), None)


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
