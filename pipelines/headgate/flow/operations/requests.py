"""Requests for operations. Each is a document, which bronze's job takes in between two batches. The
operation has the request's id, so a request that is found again after a crash is only removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.lake.storage.documents import ids_in, new_id, read_value, write_document
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.state import State

REJECT = "reject"
"""The name of a request that rejects an operation. Its document names the ``table`` and the
``operation``, at a ``generation`` of the table, and says ``by`` whom, why and when (``reason``,
``at``)."""

_FOLDER = f"{CONTROL}/operations"


@dataclass(frozen=True)
class OperationRequest:
    """A request for the operation ``name``. The oldest request is taken in first."""

    id: str
    name: str
    document: Mapping[str, Any]
    at: datetime

    @property
    def path(self) -> str:
        return f"{_FOLDER}/{self.id}.json"

    def operation(self, bronze: State) -> Operation | None:
        """The operation of the request in bronze; None if the request was not taken in yet."""
        asked = BronzePayload.of(bronze).operations
        return next((each for each in asked if each.document.get("id") == self.id), None)


def request_operation(
    layout: Layout, name: str, document: Mapping[str, Any], now: datetime
) -> OperationRequest:
    """Request an operation. Returns the request."""
    id_ = new_id(now)
    request = OperationRequest(id_, name, {**document, "id": id_}, now)
    content = {"name": name, "document": request.document, "at": now.isoformat()}
    write_document(layout.storage, request.path, content)
    return request


def request_rejection(layout: Layout, id_: str, document: Mapping[str, Any], now: datetime) -> None:
    """Request that an operation is rejected (``REJECT``). It may be requested again
    with the same id."""
    content = {"name": REJECT, "document": {**document, "id": id_}, "at": now.isoformat()}
    write_document(layout.storage, f"{_FOLDER}/{id_}.json", content)


def waiting_operations(layout: Layout) -> tuple[OperationRequest, ...]:
    """The requests that no driver has taken in yet, oldest first. Raises DamagedDocumentError."""
    read = (
        read_value(layout.storage, f"{_FOLDER}/{id_}.json", OperationRequest, id=id_)
        for id_ in ids_in(layout.storage, _FOLDER)
    )
    asked = (request for request in read if request is not None)
    return tuple(sorted(asked, key=lambda request: (request.at, request.id)))


def remove_request(layout: Layout, request: OperationRequest) -> None:
    layout.storage.remove(request.path)
