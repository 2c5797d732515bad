"""Asks a driver to stop, with a document that the driver reads.

A request records what it applies to: the drivers up to an epoch, and the failed start that existed
at that moment. It does not depend on clocks, because a clock may be set while a pipeline runs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from headgate.errors import HeadgateError
from headgate.lake.control.failure import FAILURE, Failure
from headgate.lake.control.ownership import LAYERS, last_driver, lease_path
from headgate.lake.storage.documents import Document, read_document, read_value, write_document
from headgate.lake.storage.layout import Layout

_PATH = Layout.document("stop")


@dataclass(frozen=True)
class StopRequest:
    """A request for the drivers up to ``epoch``. ``requested`` is its time, which only
    distinguishes it from other requests. ``failure`` is the time of the last failed start as of the
    request; None if there was none. ``claim`` is the token of the last supervisor that was ended by
    hand and whose stream was stopped for that, by this request or by an earlier one. ``lasts``:
    supervisors start no driver after it."""

    requested: str
    epoch: int = field(compare=False)
    failure: str | None = field(default=None, compare=False)
    claim: str | None = field(default=None, compare=False)
    lasts: bool = field(default=True, compare=False)

    def is_for(self, epoch: int) -> bool:
        """Whether the request is for the driver with ``epoch``: that driver had its lease at the
        time of the request."""
        return epoch <= self.epoch

    def is_after(self, failure: Failure) -> bool:
        """Whether ``failure`` was the last failed start at the time of the request."""
        return self.failure == failure.at.isoformat()


def request_stop(layout: Layout, claim: str | None = None) -> None:
    """Ask every driver that has a lease of the pipeline now to end after its current micro-batch,
    and supervisors not to start another one. ``claim`` is the token of a supervisor that was ended
    by hand, if the stream is stopped for that."""
    held = [_read(layout, lease_path(layer)) for layer in LAYERS]
    leases = [*held, *(last_driver(lease) or {} for lease in held)]
    wanted = StopRequest(
        datetime.now(UTC).isoformat(),
        epoch=max((lease["epoch"] for lease in leases if lease), default=0),
        failure=_read(layout, FAILURE).get("at"),
        claim=claim or _read(layout, _PATH).get("claim"),
    )
    write_document(layout.storage, _PATH, asdict(wanted))


def record_end(layout: Layout, epoch: int) -> None:
    """Record that a person has ended the driver of ``epoch`` without a request, such as by Ctrl-C
    or with all of its Airflow. Supervisors may start the stream again. An earlier request for the
    driver stays."""
    if not stop_requested(layout, epoch):
        claim = _read(layout, _PATH).get("claim")
        ended = StopRequest(datetime.now(UTC).isoformat(), epoch, claim=claim, lasts=False)
        write_document(layout.storage, _PATH, asdict(ended))


def stop_asked(layout: Layout) -> StopRequest | None:
    """The last request."""
    return read_value(layout.storage, _PATH, StopRequest)


def stop_requested(layout: Layout, epoch: int) -> bool:
    """Whether the driver of an epoch was asked to stop."""
    asked = stop_asked(layout)
    return asked is not None and asked.is_for(epoch)


def _read(layout: Layout, path: str) -> Document:
    """A document; empty if it is missing or damaged, so that a stop can be requested in any
    case."""
    with suppress(HeadgateError):
        return read_document(layout.storage, path) or {}
    return {}
