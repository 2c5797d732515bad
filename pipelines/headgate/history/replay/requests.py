"""The request of a replay: the copies, and a document that is written last and removed when done.

Bronze's commit has the id of the request that it carries out, so a request is carried out only
once: a driver that finds it again after a crash removes it. A request is void if the tables were
reset, or another replay came first: the records that it corrects may then be corrected already.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.commands import pipeline_command
from headgate.declaration.kinds import BRONZE
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.replay import Replay
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

_DOCUMENT = Layout.document("replay")
_FOLDER = f"{CONTROL}/replay"


class ReplayWaitsError(HeadgateError):
    """Another replay was requested and is not carried out yet."""


@dataclass(frozen=True)
class ReplayRequest:
    """A replay of ``rows`` copies of records of ``source``. It applies to bronze of ``generation``
    with ``before`` replays. ``reason`` says who requested it, and why."""

    id: str
    source: str
    generation: int
    before: int
    rows: int
    reason: str
    at: datetime

    @property
    def path(self) -> str:
        return f"{_FOLDER}/{self.id}.parquet"

    def is_done(self, bronze: State) -> bool:
        return any(replay.id == self.id for replay in BronzePayload.of(bronze).replays)

    def is_void(self, bronze: State) -> bool:
        replays = BronzePayload.of(bronze).replays
        return (self.generation, self.before) != (bronze.generation, len(replays))


def waiting_replay(layout: Layout) -> ReplayRequest | None:
    """The request that no driver has carried out yet. Raises DamagedDocumentError."""
    return read_value(layout.storage, _DOCUMENT, ReplayRequest)


def committed_replay(layout: Layout, pipeline: str, request: ReplayRequest) -> Replay | None:
    """The replay in bronze that a request has led to; None if it is not carried out."""
    bronze = Table(layout.storage, BRONZE.path(request.source), pipeline=pipeline).refresh()
    return next((r for r in BronzePayload.of(bronze).replays if r.id == request.id), None)


def require_no_replay(layout: Layout) -> None:
    """Raises ReplayWaitsError if a request waits."""
    if (other := waiting_replay(layout)) is not None:
        what = f"a replay of {plural(other.rows, 'record')}"
        raise ReplayWaitsError(
            f"{what} waits for a driver since {other.at:%F %T}Z",
            remedy=f"{pipeline_command('start')}, or take it back: "
            + pipeline_command("quarantine cancel"),
        )


def request_replay(layout: Layout, request: ReplayRequest, copies: pa.Table) -> None:
    """Raises ReplayWaitsError."""
    require_no_replay(layout)
    sink = pa.BufferOutputStream()
    pq.write_table(copies, sink, write_page_checksum=True)
    layout.storage.write(request.path, sink.getvalue().to_pybytes())
    failpoint("replay.written")
    write_document(layout.storage, _DOCUMENT, encoded(request))


def requested_copies(layout: Layout, request: ReplayRequest) -> pa.Table:
    """Raises OSError or pa.ArrowInvalid if the file is damaged."""
    with layout.storage.open(request.path) as source:
        return pq.ParquetFile(source, page_checksum_verification=True).read()


def remove_replay(layout: Layout, request: ReplayRequest) -> None:
    """Remove a request and its copies."""
    if waiting_replay(layout) == request:
        layout.storage.remove(_DOCUMENT)
    layout.storage.remove(request.path)
