"""Requests to a driver, each a document that the driver reads: to stop, to pause, to skip files.

A request to stop records what it applies to: the drivers up to an epoch, and the failed start that
existed at that moment. It does not depend on clocks, because a clock may be set while a pipeline
runs. A pause does not end with the driver: a paused pipeline that is started again is still paused.
Files that were set aside are skipped by the driver of bronze, because the files log has one writer:
while a driver runs, no other process may change the log.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import FAILURE, Failure
from headgate.lake.control.ownership import LAYERS, last_driver, lease_path
from headgate.lake.storage.documents import (
    Document,
    encoded,
    read_document,
    read_value,
    write_document,
)
from headgate.lake.storage.layout import Layout

_STOP = Layout.document("stop")


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
        claim=claim or _read(layout, _STOP).get("claim"),
    )
    write_document(layout.storage, _STOP, asdict(wanted))


def record_end(layout: Layout, epoch: int) -> None:
    """Record that a person has ended the driver of ``epoch`` without a request, such as by Ctrl-C
    or with all of its Airflow. Supervisors may start the stream again. An earlier request for the
    driver stays."""
    if not stop_requested(layout, epoch):
        claim = _read(layout, _STOP).get("claim")
        ended = StopRequest(datetime.now(UTC).isoformat(), epoch, claim=claim, lasts=False)
        write_document(layout.storage, _STOP, asdict(ended))


def stop_asked(layout: Layout) -> StopRequest | None:
    """The last request."""
    return read_value(layout.storage, _STOP, StopRequest)


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


_PAUSE = Layout.document("pause")


def pause(layout: Layout, now: datetime) -> datetime:
    """Pause bronze, so that it reads no new data. Returns the time when the pause began. If
    bronze was paused already, this is before ``now``."""
    if (since := paused_since(layout)) is not None:
        return since
    write_document(layout.storage, _PAUSE, {"since": now.isoformat()})
    return now


def resume(layout: Layout) -> datetime | None:
    """Let bronze continue. Returns the time when the pause began; None if bronze was not paused."""
    since = paused_since(layout)
    layout.storage.remove(_PAUSE)
    return since


def paused_since(layout: Layout) -> datetime | None:
    document = read_document(layout.storage, _PAUSE)
    return None if document is None else datetime.fromisoformat(document["since"])


_SKIP = Layout.document("skip")


@dataclass(frozen=True)
class SkipRequest:
    """Skip the files of ``source`` with these ``sequences`` that are set aside. ``reason`` is kept
    in the ledger."""

    source: str
    sequences: tuple[int, ...]
    reason: str


def ask_to_skip(layout: Layout, wanted: SkipRequest) -> None:
    """Ask the driver that runs now. A new request replaces one that no driver has carried out."""
    write_document(layout.storage, _SKIP, encoded(wanted))


def asked_to_skip(layout: Layout) -> SkipRequest | None:
    return read_value(layout.storage, _SKIP, SkipRequest)


def has_skipped(layout: Layout) -> None:
    """Remove the request, because it is carried out."""
    layout.storage.remove(_SKIP)
