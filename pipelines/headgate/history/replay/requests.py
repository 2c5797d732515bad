"""The request of a replay: the corrected copies lie beside it until bronze has ingested them.

A request is void if the tables were reset, or another replay of the source came first: the records
that it corrects may then be corrected already.
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
from headgate.lake.control.requests import Request, send_request, waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import REPLAY, ControlTable, Decisions, Replay
from headgate.lake.tables.table import Table


class ReplayWaitsError(HeadgateError):
    """Another replay was requested and is not carried out yet."""


@dataclass(frozen=True)
class ReplayDocument:
    """The document of a request and of its decision: a replay of ``rows`` copies of records of
    ``source``. It applies if the last reset has this ``generation``, and there were ``before``
    replays of the source. ``reason`` says who requested it, and why."""

    source: str
    generation: int
    before: int
    rows: int
    reason: str

    @staticmethod
    def of(request: Request) -> ReplayDocument:
        return ReplayDocument(**request.document)

    def is_void(self, decisions: Decisions) -> bool:
        before = len(decisions.replays_of(self.source))
        return (self.generation, self.before) != (decisions.generation, before)


def waiting_replay(layout: Layout) -> Request | None:
    """The request that no driver has carried out yet. Raises DamagedDocumentError."""
    return next((each for each in waiting_requests(layout) if each.kind == REPLAY), None)


def committed_replay(layout: Layout, pipeline: str, request: Request) -> Replay | None:
    """The replay that a request has led to; None if bronze has not ingested its copies."""
    source = ReplayDocument.of(request).source
    decisions = ControlTable.of(layout.storage, pipeline).refresh()
    found = (each for each in decisions.replays_of(source) if each.request == request.id)
    bronze = Table(layout.storage, BRONZE.path(source), pipeline=pipeline).refresh()
    return next((each for each in found if each.number <= bronze.operation), None)


def require_no_replay(layout: Layout) -> None:
    """Raises ReplayWaitsError if a request waits."""
    if (other := waiting_replay(layout)) is not None:
        what = f"a replay of {plural(ReplayDocument.of(other).rows, 'record')}"
        raise ReplayWaitsError(
            f"{what} waits for a driver since {other.at:%F %T}Z",
            remedy=f"{pipeline_command('start')}, or take it back: "
            + pipeline_command("quarantine cancel"),
        )


def request_replay(
    layout: Layout, id_: str, document: ReplayDocument, copies: pa.Table, now: datetime
) -> Request:
    """Raises ReplayWaitsError."""
    require_no_replay(layout)
    request = Request(id_, REPLAY, vars(document), now)
    sink = pa.BufferOutputStream()
    pq.write_table(copies, sink, write_page_checksum=True)
    layout.storage.write(request.beside, sink.getvalue().to_pybytes())
    failpoint("replay.written")
    return send_request(layout, request.kind, request.document, now, id_)


def requested_copies(layout: Layout, request: Request) -> pa.Table:
    """Raises OSError or pa.ArrowInvalid if the file is damaged."""
    with layout.storage.open(request.beside) as source:
        return pq.ParquetFile(source, page_checksum_verification=True).read()
