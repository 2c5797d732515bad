"""A cache of stream reports. Each stream is read by one thread at a time, whatever the number of
viewers. Streams whose tables do not answer do not delay others, as long as they are fewer than
``READERS``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TypeVar

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.refusing import require_input
from headgate.errors import HeadgateError
from headgate.insight.status.report import (
    Notice,
    StreamStatus,
    TablesReport,
    stream_status,
    tables_of_stream,
)
from headgate.supervision.launcher import Stream, launcher_of

log = logging.getLogger(__name__)

_T = TypeVar("_T")

FRESH = 3.0  # seconds until a report is read again
SPARING = 20  # the interval between reads of tables, as a multiple of their duration
WAITS = 4.0  # seconds, then the last report is used
READERS = 32  # streams at once: each is read in a thread of its own


@dataclass(frozen=True)
class StreamAddress:
    """The stream of a report: plain text from the DAG."""

    file: str
    name: str
    root: str
    launcher: str

    @property
    def stream(self) -> Stream:
        return Stream(Path(self.file), self.name, self.root)


@dataclass(frozen=True)
class StreamReport:
    """``error`` is why ``status`` or ``tables`` is missing. ``tables`` may be older than the rest,
    because reading them took ``cost`` seconds the last time."""

    status: StreamStatus | None = None
    tables: TablesReport | None = None
    error: str | None = None
    at: datetime | None = None
    tables_at: float = float("-inf")
    cost: float = 0.0


@dataclass
class _Kept:
    report: StreamReport
    at: float = float("-inf")
    reading: Future[StreamReport] | None = None


Read = Callable[[StreamAddress, StreamReport], StreamReport]


def read(subject: StreamAddress, before: StreamReport) -> StreamReport:
    """The report of a stream now. Never raises: ``error`` has what is wrong."""
    now = datetime.now(UTC)
    status, status_error = _guarded(subject, lambda: _status(subject.stream, subject.launcher, now))
    report = replace(before, status=status, error=status_error, at=now)
    began = time.monotonic()
    if began - before.tables_at < SPARING * before.cost:
        return report
    tables, tables_error = _guarded(subject, lambda: _tables(subject.stream, status))
    ended = time.monotonic()
    errors = [why for why in (status_error, tables_error) if why]
    error = "\n".join(dict.fromkeys(errors)) or None
    # After a failure the next read tries again.
    cost = 0.0 if tables_error else ended - began
    return replace(report, tables=tables, error=error, tables_at=ended, cost=cost)


def _status(stream: Stream, launcher: str, now: datetime) -> StreamStatus:
    return stream_status(stream.layout, launcher_of(launcher).probe(stream, now), now)


def _tables(stream: Stream, status: StreamStatus | None) -> TablesReport:
    declared = load(stream.file, needs_secrets=False)
    tables = tables_of_stream(stream.layout, declared, stream.place)
    if status is None or status.is_alive:  # a driver reports its sources itself
        return tables
    notices = _about_input(stream, declared)
    known = status.failure.reason if status.failure else None
    more = tuple(each for each in notices if each.says != known)
    return replace(tables, notices=(*(tables.notices or ()), *more))


def _about_input(stream: Stream, declared: Pipeline) -> tuple[Notice, ...]:
    """Why a driver could not read the sources now."""
    try:
        require_input(declared, stream.layout, once=True)
    except HeadgateError as error:
        return (Notice.of(error.message, error.remedy, stream.place),)
    return ()


def _guarded(subject: StreamAddress, part: Callable[[], _T]) -> tuple[_T | None, str | None]:
    try:
        return part(), None
    except HeadgateError as error:
        return None, error.text(subject.stream.place)
    except OSError as error:
        return None, str(error)
    except Exception as error:
        log.exception("cannot read the status of %s", subject.name)
        return None, f"{type(error).__name__}: {error}"


class Reports:
    def __init__(self, reader: Read = read, *, waits: float = WAITS) -> None:
        self._read = reader
        self._waits = waits
        self._kept: dict[StreamAddress, _Kept] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="headgate-page")

    def of(self, subjects: Sequence[StreamAddress]) -> list[StreamReport]:
        """The reports of some streams, at most a few seconds old if the tables answer in time.
        Blocks for ``waits`` seconds at most."""
        with self._lock:
            kept = [self._asked(subject) for subject in subjects]
            reading = [each.reading for each in kept if each.reading is not None]
        wait(reading, timeout=self._waits)
        with self._lock:
            return [self._report(subject) for subject in subjects]

    def _asked(self, subject: StreamAddress) -> _Kept:
        kept = self._kept.setdefault(subject, _Kept(StreamReport()))
        if kept.reading is None and time.monotonic() - kept.at > FRESH:
            kept.reading = self._pool.submit(self._read, subject, kept.report)
        return kept

    def _report(self, subject: StreamAddress) -> StreamReport:
        kept = self._kept[subject]
        if kept.reading is None:
            return kept.report
        if kept.reading.done():
            kept.report, kept.at, kept.reading = kept.reading.result(), time.monotonic(), None
            return kept.report
        if kept.report.at is None:
            return replace(kept.report, error="its tables have not been read yet")
        return kept.report
