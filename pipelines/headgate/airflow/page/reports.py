"""What was last read of each stream, read anew when it has grown old: however many people look, a
stream is read once at a time, and one whose tables do not answer holds up no other."""

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
from headgate.errors import HeadgateError
from headgate.supervision.launcher import Stream, launcher_of
from headgate.supervision.report import Life, TablesReport
from headgate.supervision.reporting import life_of, tables_of_stream

log = logging.getLogger(__name__)

_T = TypeVar("_T")

FRESH = 3.0  # seconds that what was read is as good as new
SPARING = 20  # tables are read no more often than this many times as long as that takes
WAITS = 4.0  # seconds, then what is known already is told
READERS = 4  # streams at once


@dataclass(frozen=True)
class Subject:
    """What is asked about: plain text, as the DAG says it."""

    file: str
    name: str
    root: str
    launcher: str

    @property
    def stream(self) -> Stream:
        return Stream(Path(self.file), self.name, self.root)


@dataclass(frozen=True)
class Told:
    """``error`` is why ``life`` or ``tables`` is missing. ``tables`` may be older than the rest:
    reading them costs more, ``cost`` seconds the last time."""

    life: Life | None = None
    tables: TablesReport | None = None
    error: str | None = None
    at: datetime | None = None
    tables_at: float = float("-inf")
    cost: float = 0.0


@dataclass
class _Kept:
    told: Told
    at: float = float("-inf")
    reading: Future[Told] | None = None


Read = Callable[[Subject, Told], Told]


def read(subject: Subject, before: Told) -> Told:
    """What is to be told of a stream now. Never raises: what is wrong is in it."""
    now = datetime.now(UTC)
    life, wrong_life = _guarded(subject, lambda: _life(subject.stream, subject.launcher, now))
    told = replace(before, life=life, error=wrong_life, at=now)
    began = time.monotonic()
    if began - before.tables_at < SPARING * before.cost:
        return told
    tables, wrong_tables = _guarded(subject, lambda: _tables(subject.stream))
    ended = time.monotonic()
    errors = [why for why in (wrong_life, wrong_tables) if why]
    error = "\n".join(dict.fromkeys(errors)) or None
    # Where it failed, the next look tries again.
    cost = 0.0 if wrong_tables else ended - began
    return replace(told, tables=tables, error=error, tables_at=ended, cost=cost)


def _life(stream: Stream, launcher: str, now: datetime) -> Life:
    return life_of(stream.layout, launcher_of(launcher).probe(stream, now), now)


def _tables(stream: Stream) -> TablesReport:
    return tables_of_stream(stream.layout, load(stream.file), stream.place)


def _guarded(subject: Subject, part: Callable[[], _T]) -> tuple[_T | None, str | None]:
    try:
        return part(), None
    except HeadgateError as error:
        return None, error.told(subject.stream.place)
    except OSError as error:
        return None, str(error)
    except Exception as error:
        log.exception("cannot tell how %s is", subject.name)
        return None, f"{type(error).__name__}: {error}"


class Reports:
    def __init__(self, reader: Read = read, *, waits: float = WAITS) -> None:
        self._read = reader
        self._waits = waits
        self._kept: dict[Subject, _Kept] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="headgate-page")

    def of(self, subjects: Sequence[Subject]) -> list[Told]:
        """What is known of each, none older than a few seconds where its tables answer in time.
        Blocks, for ``waits`` seconds at most."""
        with self._lock:
            kept = [self._asked(subject) for subject in subjects]
            reading = [each.reading for each in kept if each.reading is not None]
        wait(reading, timeout=self._waits)
        with self._lock:
            return [self._told(subject) for subject in subjects]

    def _asked(self, subject: Subject) -> _Kept:
        kept = self._kept.setdefault(subject, _Kept(Told()))
        if kept.reading is None and time.monotonic() - kept.at > FRESH:
            kept.reading = self._pool.submit(self._read, subject, kept.told)
        return kept

    def _told(self, subject: Subject) -> Told:
        kept = self._kept[subject]
        if kept.reading is None:
            return kept.told
        if kept.reading.done():
            kept.told, kept.at, kept.reading = kept.reading.result(), time.monotonic(), None
            return kept.told
        if kept.told.at is None:
            return replace(kept.told, error="its tables have not answered yet")
        return kept.told
