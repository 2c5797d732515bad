"""The mailbox of a pipeline: what people and other processes ask of bronze's job, a document each.

Between two batches, the job decides on each request, the oldest first, and removes it. The decision
(``lake.tables.decisions``) has the id of the request, so a request that is found again after a
crash is only removed. Whoever waits for a decision reads the mailbox first, and then the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.lake.storage.documents import ids_in, new_id, read_value, write_document
from headgate.lake.storage.layout import CONTROL, Layout

FOLDER = f"{CONTROL}/requests"


@dataclass(frozen=True)
class Request:
    """``kind`` is the kind of the decision that is asked for, ``document`` has its parameters.
    ``at`` is when it was asked for."""

    id: str
    kind: str
    document: Mapping[str, Any]
    at: datetime

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.id}.json"

    @property
    def beside(self) -> str:
        """The path of a file with the rows that belong to the request, if it has any."""
        return f"{FOLDER}/{self.id}.parquet"


def send_request(
    layout: Layout, kind: str, document: Mapping[str, Any], now: datetime, id_: str | None = None
) -> Request:
    """Ask for a decision. With ``id_``, the same may be asked for again."""
    request = Request(id_ or new_id(now), kind, document, now)
    content = {"kind": kind, "document": document, "at": now.isoformat()}
    write_document(layout.storage, request.path, content)
    return request


def find_request(layout: Layout, id_: str) -> Request | None:
    """The request that waits under an id. Raises DamagedDocumentError."""
    return read_value(layout.storage, f"{FOLDER}/{id_}.json", Request, id=id_)


def waiting_requests(layout: Layout) -> tuple[Request, ...]:
    """The requests that are not decided yet, the oldest first. Raises DamagedDocumentError."""
    read = (find_request(layout, id_) for id_ in ids_in(layout.storage, FOLDER))
    found = (request for request in read if request is not None)
    return tuple(sorted(found, key=lambda request: (request.at, request.id)))


def remove_request(layout: Layout, request: Request) -> None:
    """Remove a request, and then the rows beside it: without its document, nobody reads these."""
    layout.storage.remove(request.path)
    layout.storage.remove(request.beside)
